// The broker's services, passed on as they are, for transports that spoil one of them.
#pragma once

#include <memory>
#include <utility>

#include <millrace/system_plugin.h>

namespace millrace::broken {

class PassingBroker : public Broker {
 public:
  explicit PassingBroker(Broker& sound) : sound_(sound) {}

  std::unique_ptr<Session> open_session(const ClientInfo& client) override {
    return sound_.open_session(client);
  }
  MemoryBudget& memory(Shard& shard) noexcept override { return sound_.memory(shard); }
  Call<ProduceAnswer> produce(Session& session, ProduceRequest request) override {
    return sound_.produce(session, std::move(request));
  }
  Call<FetchAnswer> fetch(Session& session, FetchRequest request) override {
    return sound_.fetch(session, std::move(request));
  }
  Task<ListOffsetsAnswer> list_offsets(Session& session, ListOffsetsRequest request) override {
    return sound_.list_offsets(session, std::move(request));
  }
  Task<std::vector<TopicEpochEnds>> epoch_ends(Session& session,
                                               std::vector<TopicEpochQuery> topics) override {
    return sound_.epoch_ends(session, std::move(topics));
  }
  Task<MetadataAnswer> metadata(Session& session, MetadataRequest request) override {
    return sound_.metadata(session, std::move(request));
  }
  Task<InitProducerIdAnswer> init_producer_id(Session& session,
                                              InitProducerIdRequest request) override {
    return sound_.init_producer_id(session, std::move(request));
  }
  Admin& admin() noexcept override { return sound_.admin(); }
  Configs& configs() noexcept override { return sound_.configs(); }
  void* service(std::string_view id) noexcept override { return sound_.service(id); }

 private:
  Broker& sound_;
};

}  // namespace millrace::broken
