// Aggregates of all plugins, on all shards: finds the object of a key, makes its topic when it is
// first needed, and carries commands and answers between shards.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate_admin.h>
#include <millrace/aggregates.h>

#include "kernel/broker/broker.h"
#include "kernel/config/config.h"
#include "kernel/streams/aggregate_shard.h"
#include "kernel/streams/aggregate_source.h"

namespace millrace::kernel {

/// The plugin that offers an aggregate.
struct AggregateOrigin {
  std::string plugin;  ///< id
  std::string version = {};
  std::string path = {};
};

class AggregateRouter final : public Aggregates, public AggregateAdmin {
 public:
  /// `broker` outlives it.
  AggregateRouter(KernelBroker& broker, OperatorSettings settings);
  ~AggregateRouter() override;

  /// Before open(). Errc::conflict where a name or a topic is taken, Errc::invalid_argument where
  /// the declaration says too little. `factory` outlives this.
  Result<> add(AggregateFactory& factory, AggregateOrigin origin);
  /// Where other versions come from; outlives this. Before open(). Without it nothing is replaced.
  void use(AggregateSource& source) { source_ = &source; }
  /// Follows the partitions that are there and those that come.  [control thread]
  Task<> open();
  /// Ends every aggregate; those that wait are told to look elsewhere.  [control thread]
  Task<> close();

  // Aggregates
  Call<AggregateAnswer> command(std::string_view name, std::string_view key,
                                std::unique_ptr<Message> body) override;
  Task<AggregateAnswer> query(std::string_view name, std::string_view key,
                              std::unique_ptr<Message> question) override;
  Task<std::vector<AggregateAnswer>> query_all(
      std::string_view name, std::function<std::unique_ptr<Message>()> make) override;
  Task<AggregateHome> home(std::string_view name, std::string_view key) override;

  // AggregateAdmin
  Task<std::vector<AggregateFact>> list() override;
  Task<> replace(std::string name, std::string file) override;

 private:
  /// Where a key lives, or why that cannot be said.
  struct Place {
    ErrorCode error = ErrorCode::none;
    std::string detail;
    bool no_topic = false;
    const std::string* declared = nullptr;  // the topic of the log, or
    std::string beside;                     // that of one beside a user's
    std::int32_t leader = -1;
    std::int32_t partition = -1;
    const std::string& topic() const noexcept { return declared ? *declared : beside; }
  };

  const DeclaredAggregate* find(std::string_view name) const noexcept;
  AggregateShard& here() noexcept;
  Place place(const DeclaredAggregate& aggregate, std::string_view key, AggregateShard& at) const;
  Place place_beside(const DeclaredAggregate& aggregate, std::string_view key,
                     const ClusterState& cluster) const;
  Task<> make_topic(const DeclaredAggregate& aggregate, std::string key);
  Task<> create_topic(const DeclaredAggregate& aggregate, std::string key);
  void tell_not_made(std::string_view topic, std::string_view reason);
  void erase_orphans();
  Call<AggregateAnswer> send(const DeclaredAggregate& aggregate, const Place& placed,
                             std::string_view key, std::unique_ptr<Message> body);
  Task<> send_later(const DeclaredAggregate& aggregate, std::string key,
                    std::unique_ptr<Message> body, Resolver<> dispatched,
                    Resolver<AggregateAnswer> done);
  ReplyTo next_reply() noexcept;
  // With names of their own: a task begins when it is awaited.
  Task<AggregateAnswer> query_one(std::string name, std::string key,
                                  std::unique_ptr<Message> question);
  Task<std::vector<AggregateAnswer>> query_each(std::string name,
                                                std::function<std::unique_ptr<Message>()> make);
  Task<AggregateHome> find_home(std::string name, std::string key);
  // [control thread]
  Task<std::vector<AggregateFact>> list_all();
  Task<> replace_one(std::string name, std::string file);
  Task<> prepare(const DeclaredAggregate& aggregate, std::shared_ptr<AggregateFactory> next);
  template <class F>
  Task<> on_each_shard(F make);

  KernelBroker& broker_;
  EffectCalls effects_;
  std::vector<std::unique_ptr<DeclaredAggregate>> declared_;
  std::vector<std::unique_ptr<AggregateShard>> shards_;
  std::atomic<std::uint64_t> next_reply_{1};
  AggregateSource* source_ = nullptr;
  std::vector<AggregateVersion> versions_;  // that run, by number; [control thread]
  Mutex replacing_;                         // one at a time
  Gate making_;                             // topics, and other versions
  MonoTime quiet_until_ = MonoTime::min();  // about topics that cannot be made; [control thread]
};

}  // namespace millrace::kernel
