// A cluster as a client sees it: asks any broker for metadata, keeps a connection to each leader.
#pragma once

#include <chrono>
#include <functional>
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

/// Of a number that `option` gives and the topic does not have; says which there are.
Error no_such_partition(std::string_view option, const TopicInfo& topic, std::int32_t number);

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
  /// Asks any broker. While it does not answer, or `code_of` its answer is one that passes, as
  /// where it has just started, that is waited for, and stderr says so. What is asked for may then
  /// be done twice.
  template <class Request, class CodeOf>
  Task<typename Request::Response> ask_any(Request request, CodeOf code_of) {
    Wait wait("a broker");
    while (true) {
      Error why{Errc::closed, "the connection is gone"};
      auto connected = any_->status() ? Result<>() : co_await reconnect();
      if (connected) {
        auto answer = co_await any_->call(request);
        if (answer && !passes(code_of(*answer), Again::always)) co_return std::move(answer);
        why =
            answer ? passing(code_of(*answer), "the broker is not ready for this") : answer.error();
      } else {
        why = connected.error();
      }
      MR_CO_CHECK(co_await next_try(wait, std::move(why)));
    }
  }
  /// Asks the broker that changes topics. While there is none, or it does not answer, another one
  /// is waited for, and stderr says so. `code_of` an answer tells when it is the controller no
  /// more, or wants to be asked later. Somebody who has died may have done what is asked for again.
  template <class Request, class CodeOf>
  Task<typename Request::Response> ask_controller(Request request, CodeOf code_of) {
    Wait wait("a controller");
    while (true) {
      Error why{Errc::closed, "there is no controller"};
      auto found = co_await find_controller();
      if (found) {
        auto calling = with_deadline((*found)->call(request), wait_max);
        auto answer = co_await std::move(calling);
        if (answer && !is_for_later(code_of(*answer))) co_return std::move(answer);
        why = answer ? passing(code_of(*answer), "broker " + std::to_string(controller_id_))
                     : answer.error();
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
  /// When what was asked for is asked for again.
  enum class Again { always, if_undone };
  /// Whom a caller waits for.
  struct Wait {
    explicit Wait(std::string who) : whom(std::move(who)) {}
    std::string whom;
    std::optional<MonoTime> until{};  // once there is something to wait for
  };
  /// Asks the broker that leads `partition` of `topic`, and what topic() told of it is renewed
  /// while it leads no more, does not answer or has too few replicas in sync: then the next leader
  /// is waited for, and stderr says so. `code_of` an answer is its error for that partition; others
  /// than these are the caller's. Somebody who has died may have done what is asked for again,
  /// unless `again` says otherwise.
  template <class Request, class CodeOf>
  Task<typename Request::Response> ask_leader(TopicName topic, PartitionInfo& partition,
                                              Request request, CodeOf code_of,
                                              Again again = Again::always) {
    Wait wait("a leader of " + to_string(TopicPartition{topic.name, partition.partition}));
    while (true) {
      Error why{Errc::closed, "it leads no more"};
      const auto leader = partition.leader;
      auto found = co_await leader_of(partition);
      if (found) {
        auto answer = co_await (*found)->call(request);
        if (!answer && again == Again::if_undone) co_return answer.error();
        if (answer && !passes(code_of(*answer), again)) co_return std::move(answer);
        why =
            answer ? passing(code_of(*answer), "broker " + std::to_string(leader)) : answer.error();
        if (!answer) drop_if_dead(leader);
      } else {
        why = found.error();
      }
      MR_CO_CHECK(co_await next_try(wait, std::move(why)));
      MR_CO_CHECK(co_await renew(topic, partition));
    }
  }
  /// The same once, for a request for several partitions that one broker leads: its answer, or why
  /// there is none.
  template <class Request>
  Task<typename Request::Response> call_leader(PartitionInfo partition, Request request) {
    MR_CO_TRY(auto* leader, co_await leader_of(partition));
    auto answer = co_await leader->call(std::move(request));
    if (!answer) drop_if_dead(partition.leader);
    co_return std::move(answer);
  }
  /// Whether an answer says that another broker leads, or soon will, or that this one has yet to
  /// learn what it leads.
  static bool moves(ErrorCode code) noexcept;
  /// A code that is over soon, as next_try() takes it.
  static Error passing(ErrorCode code, std::string_view what);
  /// Waits a moment where `why` is something that passes; else, and after half a minute, it fails.
  Task<> next_try(Wait& wait, Error why);
  /// What metadata() tells of the partitions of a topic; nothing while that cannot be told.
  /// Errc::not_found: the topic is gone, or another one has its name.
  Task<std::vector<PartitionInfo>> partitions(TopicName topic);
  /// Who is told, instead of stderr, whom somebody begins to wait for.
  void on_wait(std::function<void(const std::string&)> told) { waits_ = std::move(told); }

 private:
  static constexpr Duration wait_max = std::chrono::seconds(30);

  /// A connection to some broker that lives.
  Task<> reconnect();
  Task<kafka::Client*> find_controller();
  /// Whether that is over soon, and asking again does no harm.
  static bool passes(ErrorCode code, Again again) noexcept;
  /// Of a controller's answer: another one is to be asked, or the same once more.
  static bool is_for_later(ErrorCode code) noexcept;
  /// Who leads it now; as it was while that cannot be told.
  Task<> renew(TopicName topic, PartitionInfo& partition);
  /// Another caller may have connected anew meanwhile.
  void drop_if_dead(std::int32_t broker);

  ClusterClient(Network& network, std::unique_ptr<kafka::Client> any,
                std::vector<Address> bootstrap)
      : network_(network), bootstrap_(std::move(bootstrap)), any_(std::move(any)) {}

  Network& network_;
  std::vector<Address> bootstrap_;
  std::unique_ptr<kafka::Client> any_;
  std::map<std::int32_t, Address> brokers_;
  std::int32_t controller_id_ = -1;
  std::map<std::int32_t, std::unique_ptr<kafka::Client>> connected_;
  std::function<void(const std::string&)> waits_;
};

}  // namespace millrace::kernel::cli
