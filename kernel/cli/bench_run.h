// What the three verbs of `millrace bench` share: the topic, when messages are due, what was
// counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <millrace/codec.h>
#include <millrace/environment.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/histogram.h"
#include "kernel/cli/interrupt.h"

namespace millrace::kernel::cli {

struct BenchSettings {
  std::string topic;          ///< empty: one is made, and removed at the end
  std::int64_t messages = 0;  ///< 0: as many as the time takes
  std::int64_t seconds = 0;   ///< 0: until all messages are through
  std::size_t message_bytes = 1024;
  std::int64_t rate = 0;  ///< messages a second; 0: as fast as it goes
  std::string acks = "all";
  std::string compression = "none";
  std::int32_t partitions = 1;  ///< of the topic that is made
  std::int16_t replicas = -1;   ///< -1: as the broker makes them
  std::size_t connections = 1;
  std::size_t in_flight = 5;  ///< requests of a connection
  std::size_t batch_bytes = 65'536;
};

/// When messages are due. Without a rate at once.
class Pace {
 public:
  Pace(MonoTime start, std::int64_t rate)
      : start_(start), step_(rate > 0 ? Duration(std::chrono::seconds(1)) / rate : Duration(0)) {}
  bool paced() const noexcept { return step_ > Duration(0); }
  MonoTime start() const noexcept { return start_; }
  MonoTime due(std::int64_t message) const noexcept { return start_ + step_ * message; }
  /// How many of those from `message` on are due by `now`.
  std::int64_t due_by(MonoTime now, std::int64_t message) const noexcept {
    if (!paced() || now < due(message)) return 0;
    return (now - due(message)) / step_ + 1;
  }

 private:
  MonoTime start_;
  Duration step_;
};

/// What one measurement has come to so far.  [one shard]
struct BenchCounts {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;  ///< of their values
  Histogram latency;
  std::optional<MonoTime> first;
  std::optional<MonoTime> last;

  void count(std::int64_t more, std::size_t message_bytes, MonoTime now) {
    messages += more;
    bytes += more * static_cast<std::int64_t>(message_bytes);
    last = now;
  }
  double seconds() const {
    if (!first || !last) return 0;
    return std::chrono::duration<double>(*last - *first).count();
  }
};

/// The name of a topic that bench has made, as long as it is there: for whoever ends the process
/// before it is removed.  [any thread]
class MadeTopic {
 public:
  void set(std::string name) {
    const std::scoped_lock lock(mutex_);
    name_ = std::move(name);
  }
  std::string name() const {
    const std::scoped_lock lock(mutex_);
    return name_;
  }

 private:
  mutable std::mutex mutex_;
  std::string name_;
};

/// Waits for `pending` also where our own scope is cancelled: what runs there uses what is ours.
template <class T>
Task<T> to_end(Pending<T> pending) {
  CancelScope never;
  auto waiting = [](Pending<T> one) -> Task<T> { co_return co_await one; };
  auto task = waiting(std::move(pending)).within(never);
  co_return co_await std::move(task);
}

/// One run: its cluster, its topic, and whether it goes on.  [one shard]
class BenchRun {
 public:
  BenchRun(Environment& environment, std::string bootstrap, const BenchSettings& settings,
           Codecs codecs, MadeTopic& made_topic)
      : environment_(environment),
        bootstrap_(std::move(bootstrap)),
        settings_(settings),
        codecs_(codecs),
        made_topic_(made_topic) {}

  /// Finds the topic, or makes one and waits until it is led.
  Task<> begin();
  /// Removes what begin() has made.
  Task<> end();

  const BenchSettings& settings() const noexcept { return settings_; }
  Codecs codecs() const noexcept { return codecs_; }
  const TopicInfo& topic() const noexcept { return topic_; }
  bool made_topic() const noexcept { return made_; }
  MonoTime now() const noexcept { return environment_.clock().now(); }
  Environment& environment() noexcept { return environment_; }
  Task<std::unique_ptr<ClusterClient>> connect();
  /// How many requests have waited for a leader, or a controller, that answers.
  std::int64_t waits() const noexcept { return waits_; }

  /// Nobody begins anything new: time is up, Ctrl-C, or something has failed.
  bool stopping() const noexcept { return stopping_ || interrupt_.asked(); }
  void stop() noexcept { stopping_ = true; }
  /// The first failure is the run's.
  void fail(Error error) {
    if (!failure_) failure_ = std::move(error);
    stopping_ = true;
  }
  const std::optional<Error>& failure() const noexcept { return failure_; }
  const Interrupt& interrupt() const noexcept { return interrupt_; }

 private:
  Task<> make_topic(ClusterClient& cluster);
  Task<> remove_topic();

  Environment& environment_;
  const std::string bootstrap_;
  const BenchSettings& settings_;
  const Codecs codecs_;
  MadeTopic& made_topic_;
  Interrupt interrupt_;
  TopicInfo topic_;
  bool made_ = false;
  bool stopping_ = false;
  std::int64_t waits_ = 0;
  std::optional<Error> failure_;
};

/// Sends messages over the settings' connections until the run stops or all are acknowledged, once
/// each; it follows leaders that change.
/// With a rate, times count from when a message was due; else from when its batch is handed to the
/// connection. With `stamped` a message carries the time that it was due at.
Task<> bench_produce(BenchRun& run, BenchCounts& counts, bool stamped);

struct ConsumeGoal {
  /// Where to begin, in the order of partitions.
  std::vector<Offset> from;
  std::vector<Offset> to;     ///< where to end; empty: nowhere
  std::int64_t messages = 0;  ///< ends after so many; 0: with the run
  /// Times are of messages that were sent stamped, from when they were due until they are opened
  /// here; else of fetch requests.
  bool stamped = false;
};
/// Reads over the settings' connections, each with partitions of its own, whose leaders may change.
Task<> bench_consume(BenchRun& run, BenchCounts& counts, ConsumeGoal goal);

/// The first or the next offset of each partition.
Task<std::vector<Offset>> bench_bounds(BenchRun& run, OffsetSpec which);

}  // namespace millrace::kernel::cli
