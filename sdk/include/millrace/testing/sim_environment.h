// Clusters in one thread under one seed: every node is an Environment with its own shards, workers
// and disk; clock, chance and network are shared. Time stands still while anything can run and then
// jumps to the next timer, so hours pass in milliseconds, and the same seed gives the same run.
//
//   SimWorld world(seed);
//   auto& node = world.add_node("b1");
//   auto answer = world.run(node.control(), [&] { return ask(node); });
//   world.run_until([&] { return done; }, 10s);
//
// A node that has crashed or was killed goes on as a ghost: its connections are gone and every call
// to its disk and network fails, so nothing that it does has an effect any more, but its shards
// still run. So its owner stops what ran on it in the ordinary way, which unwinds every coroutine,
// destroys it, and calls restart() to begin anew on what the disk has kept.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/environment.h>
#include <millrace/testing/sim_disk.h>
#include <millrace/testing/sim_random.h>
#include <millrace/testing/sim_trace.h>

namespace millrace::testing {

class SimScheduler;
class SimWire;

/// One machine. Its name and its host, "10.0.0.1" for the first, lead to it from every node;
/// "localhost", "127.0.0.1" and "0.0.0.0" to itself. Its disk begins with one durable folder,
/// "/data". Work may be spread over shards only as in the real environment: a timer or a wake-up
/// from another thread than the shard's own ends the process.
class SimEnvironment final : public Environment {
 public:
  ~SimEnvironment() override;

  Clock& clock() noexcept override;
  Random& random() noexcept override;
  Network& network() noexcept override;
  SimDisk& files() noexcept override;
  BlockingPool& workers() noexcept override;
  std::span<Shard* const> shards() noexcept override;
  Shard& control() noexcept override;

  const std::string& name() const noexcept;
  const std::string& host() const noexcept;
  /// Spawned tasks that ended with an error: "b1/0 serve: i/o: …".
  const std::vector<std::string>& reports() const noexcept;

  /// The power goes; see above.
  void crash();
  /// The process dies, as by kill -9; see above. What it wrote stays, synced or not.
  void kill();
  void restart();
  bool crashed() const noexcept;
  /// The process is stopped for so long, as by SIGSTOP, and then goes on: nothing of it runs, what
  /// is sent to it waits.
  void pause(Duration time);
  /// Sets the wall clock forward or back. The other clock does not move.
  void jump_wall(Duration by);

 private:
  friend class SimWorld;
  struct Parts;
  void disappear();
  explicit SimEnvironment(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

/// The owner of all nodes. What runs on them is destroyed before it, and stopped before that; at
/// its end it closes every connection, drops every timer and lets what still waits unwind.
class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  SimEnvironment& add_node(std::string name, unsigned shards = 1);

  MonoTime now() const noexcept;
  SimRandom& random() noexcept;
  const SimTrace& trace() const noexcept;
  /// Adds a line of the test's own.
  void note(std::string text);

  /// Runs until the condition holds; false when it does not within `limit` of virtual time (or
  /// within a bound of steps, when something spins).
  bool run_until(const std::function<bool()>& condition, Duration limit);
  void run_for(Duration time);
  /// Runs the task that `make` returns on `shard`. Errc::timed_out when it does not end within
  /// `limit`; it then goes on, so what it refers to must live as long as the world.
  template <class F>
  auto run(Shard& shard, F make, Duration limit = std::chrono::minutes(1))
      -> decltype(make().await_resume()) {
    using R = decltype(make().await_resume());
    using T = typename R::value_type;
    auto result = std::make_shared<std::optional<R>>();
    auto body = [](F task, std::shared_ptr<std::optional<R>> into) -> Task<> {
      Result<T> ended = co_await task();
      into->emplace(std::move(ended));
      co_return {};
    };
    shard.post([&shard, body, make = std::move(make), result]() mutable {
      spawn(shard, body(std::move(make), std::move(result)), "run");
    });
    if (!run_until([&result] { return result->has_value(); }, limit)) {
      return Error{Errc::timed_out, "the task did not end in the simulated time given to it"};
    }
    return *std::move(*result);
  }

  /// No byte passes between the two until heal(); connections stay, and what was sent waits.
  void block(const SimEnvironment& a, const SimEnvironment& b);
  /// As block(), of what goes from one to the other alone; new connections need both ways.
  void block_one_way(const SimEnvironment& from, const SimEnvironment& to);
  /// What the node sends and is sent takes up to so much longer until heal(), now and then a
  /// retransmission more: links that are late and lose packets.
  void delay(const SimEnvironment& node, Duration longest);
  void heal();
  /// Resets every connection between the two.
  void cut(const SimEnvironment& a, const SimEnvironment& b);

  /// Runs `job` now, as a thread that is no shard's, such as main: what it destroys may not wake
  /// anybody, or the process ends.
  void run_outside(const std::function<void()>& job);

 private:
  std::unique_ptr<SimScheduler> scheduler_;
  std::unique_ptr<SimWire> wire_;
  std::vector<std::unique_ptr<SimEnvironment>> nodes_;
};

}  // namespace millrace::testing
