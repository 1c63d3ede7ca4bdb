// A cluster as a client sees it: asks any broker for metadata, keeps a connection to each leader.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/broker.h>
#include <millrace/environment.h>
#include <millrace/kafka/client.h>
#include <millrace/shard.h>

namespace millrace::kernel::cli {

/// "UNKNOWN_TOPIC_OR_PARTITION: topic 'x'", as an Error with a fitting Errc.
Error error_of(ErrorCode code, std::string_view what);

/// [one shard]
class ClusterClient {
 public:
  /// Errors say which address was tried.
  static Task<std::unique_ptr<ClusterClient>> connect(Network& network, std::string bootstrap);

  /// The broker that we bootstrapped from, or another since it has gone.
  kafka::Client& any() noexcept { return *any_; }
  /// All topics, or those that are named; creates nothing.
  Task<MetadataAnswer> metadata(std::optional<std::vector<std::string>> topics);
  /// One topic; its error as an Error that names it.
  Task<TopicInfo> topic(std::string name);
  /// A broker that metadata() has told.
  Task<kafka::Client*> broker(std::int32_t id);
  /// Asks the broker that changes topics. While there is none, or it does not answer, another one
  /// is waited for, and stderr says so. `code_of` an answer tells when it is the controller no
  /// more. Somebody who has died may have done what is asked for again.
  template <class Request, class CodeOf>
  Task<typename Request::Response> ask_controller(Request request, CodeOf code_of) {
    Wait wait{.whom = "a controller"};
    while (true) {
      Error why{Errc::closed, "it is the controller no more"};
      auto found = co_await find_controller();
      if (found) {
        auto calling = with_deadline((*found)->call(request), wait_max);
        auto answer = co_await std::move(calling);
        if (answer && code_of(*answer) != ErrorCode::not_controller) co_return std::move(answer);
        if (!answer) why = answer.error();
        connected_.erase(controller_id_);
      } else {
        why = found.error();
      }
      MR_CO_CHECK(co_await next_try(wait, std::move(why)));
    }
  }
  /// Who has answered that.
  std::int32_t controller_id() const noexcept { return controller_id_; }
  /// The broker that leads `partition` of a topic that topic() has told.
  Task<kafka::Client*> leader_of(PartitionInfo partition);
  /// Asks the broker that leads `partition` of `topic`, and what topic() told of it is renewed
  /// while it leads no more or does not answer: then the next leader is waited for, and stderr says
  /// so. `code_of` an answer is its error for that partition; others than these are the caller's.
  /// Somebody who has died may have done what is asked for again.
  template <class Request, class CodeOf>
  Task<typename Request::Response> ask_leader(std::string topic, PartitionInfo& partition,
                                              Request request, CodeOf code_of) {
    Wait wait{.whom = "a leader of " + to_string(TopicPartition{topic, partition.partition})};
    while (true) {
      Error why{Errc::closed, "it leads no more"};
      auto found = co_await leader_of(partition);
      if (found) {
        auto answer = co_await (*found)->call(request);
        if (answer && !moves(code_of(*answer))) co_return std::move(answer);
        if (answer) {
          why = error_of(code_of(*answer), "broker " + std::to_string(partition.leader));
        } else {
          why = answer.error();
          connected_.erase(partition.leader);
        }
      } else {
        why = found.error();
      }
      MR_CO_CHECK(co_await next_try(wait, std::move(why)));
      MR_CO_CHECK(co_await renew(topic, partition));
    }
  }

 private:
  static constexpr Duration wait_max = std::chrono::seconds(30);
  struct Wait {
    std::string whom;
    std::optional<MonoTime> until{};  // once there is something to wait for
  };

  /// A connection to some broker that lives.
  Task<> reconnect();
  Task<kafka::Client*> find_controller();
  /// Whether the answer says that another broker leads, or soon will.
  static bool moves(ErrorCode code) noexcept;
  /// Who leads it now; as it was while that cannot be told.
  Task<> renew(std::string topic, PartitionInfo& partition);
  static Task<> next_try(Wait& wait, Error why);

  ClusterClient(Network& network, std::unique_ptr<kafka::Client> any,
                std::vector<Address> bootstrap)
      : network_(network), bootstrap_(std::move(bootstrap)), any_(std::move(any)) {}

  Network& network_;
  std::vector<Address> bootstrap_;
  std::unique_ptr<kafka::Client> any_;
  std::map<std::int32_t, Address> brokers_;
  std::int32_t controller_id_ = -1;
  std::map<std::int32_t, std::unique_ptr<kafka::Client>> connected_;
};

}  // namespace millrace::kernel::cli
