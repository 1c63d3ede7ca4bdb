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

/// [one shard]
class ClusterClient {
 public:
  /// Errors say which address was tried.
  static Task<std::unique_ptr<ClusterClient>> connect(Network& network, std::string bootstrap);

  /// The broker that we bootstrapped from.
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
    ControllerWait wait;
    while (true) {
      Error why{Errc::closed, "it is the controller no more"};
      auto found = co_await find_controller();
      if (found) {
        auto calling = with_deadline((*found)->call(request), controller_wait_max);
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

 private:
  static constexpr Duration controller_wait_max = std::chrono::seconds(30);
  struct ControllerWait {
    std::optional<MonoTime> until;  // once there is something to wait for
  };

  Task<kafka::Client*> find_controller();
  static Task<> next_try(ControllerWait& wait, Error why);

  ClusterClient(Network& network, std::unique_ptr<kafka::Client> any)
      : network_(network), any_(std::move(any)) {}

  Network& network_;
  std::unique_ptr<kafka::Client> any_;
  std::map<std::int32_t, Address> brokers_;
  std::int32_t controller_id_ = -1;
  std::map<std::int32_t, std::unique_ptr<kafka::Client>> connected_;
};

/// "UNKNOWN_TOPIC_OR_PARTITION: topic 'x'", as an Error with a fitting Errc.
Error error_of(ErrorCode code, std::string_view what);

}  // namespace millrace::kernel::cli
