#include <millrace/testing/sim_environment.h>

#include "sim_network.h"
#include "sim_scheduler.h"
#include "sim_shard.h"

namespace millrace::testing {

namespace {

// More than any honest run takes between two looks at its condition.
constexpr std::uint64_t steps_max = 20'000'000;
// 2025-01-01 UTC.
constexpr std::int64_t wall_begin_ms = 1'735'689'600'000;

class SimClock final : public Clock {
 public:
  explicit SimClock(SimScheduler& scheduler) : scheduler_(scheduler) {}
  MonoTime now() const noexcept override { return scheduler_.now(); }
  Timestamp wall() const noexcept override {
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(
        scheduler_.now().time_since_epoch() + jumped_);
    return {wall_begin_ms + since.count()};
  }
  void jump(Duration by) noexcept { jumped_ += by; }

 private:
  SimScheduler& scheduler_;
  Duration jumped_{};
};

}  // namespace

struct SimEnvironment::Parts {
  Parts(SimScheduler& scheduler_in, SimWire& wire_in, std::string name_in, std::string host_in,
        unsigned shards_in)
      : scheduler(scheduler_in),
        wire(wire_in),
        name(std::move(name_in)),
        host(std::move(host_in)),
        clock(scheduler),
        network(scheduler, wire, host),
        disk(
            clock, scheduler.random(),
            [this](const std::string& text) { scheduler.note(name + " " + text); },
            [this](Duration time) { scheduler.wait(time); }),
        workers(scheduler, name + "/workers") {
    for (unsigned index = 0; index < shards_in; ++index) {
      shards.push_back(std::make_unique<SimShard>(scheduler, index,
                                                  name + "/" + std::to_string(index), reports));
      data_shards.push_back(shards.back().get());
    }
    shards.push_back(std::make_unique<SimShard>(scheduler, shards_in, name + "/control", reports));
    wire.add_host(name, host);
    MR_ASSERT(disk.make_folders("/data"));
    MR_ASSERT(disk.sync_folder("/"));
  }

  SimScheduler& scheduler;
  SimWire& wire;
  std::string name;
  std::string host;
  std::vector<std::string> reports;
  SimClock clock;
  SimNetwork network;
  SimDisk disk;
  SimPool workers;
  std::vector<std::unique_ptr<SimShard>> shards;  // the control shard is the last
  std::vector<Shard*> data_shards;
  bool crashed = false;
};

SimEnvironment::SimEnvironment(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SimEnvironment::~SimEnvironment() = default;

Clock& SimEnvironment::clock() noexcept { return parts_->clock; }
Random& SimEnvironment::random() noexcept { return parts_->scheduler.random(); }
Network& SimEnvironment::network() noexcept { return parts_->network; }
SimDisk& SimEnvironment::files() noexcept { return parts_->disk; }
BlockingPool& SimEnvironment::workers() noexcept { return parts_->workers; }
std::span<Shard* const> SimEnvironment::shards() noexcept { return parts_->data_shards; }
Shard& SimEnvironment::control() noexcept { return *parts_->shards.back(); }
const std::string& SimEnvironment::name() const noexcept { return parts_->name; }
const std::string& SimEnvironment::host() const noexcept { return parts_->host; }
const std::vector<std::string>& SimEnvironment::reports() const noexcept { return parts_->reports; }
bool SimEnvironment::crashed() const noexcept { return parts_->crashed; }
void SimEnvironment::jump_wall(Duration by) { parts_->clock.jump(by); }

void SimEnvironment::crash() {
  parts_->disk.crash();
  disappear();
}

void SimEnvironment::kill() {
  parts_->disk.kill();
  disappear();
}

void SimEnvironment::pause(Duration time) {
  parts_->scheduler.note(parts_->name + " pause");
  for (const auto& shard : parts_->shards) shard->pause(time);
  parts_->workers.pause(time);
}

void SimEnvironment::disappear() {
  parts_->crashed = true;
  parts_->network.set_down(true);
  parts_->wire.drop(parts_->host);
}

void SimEnvironment::restart() {
  parts_->scheduler.note(parts_->name + " restart");
  parts_->crashed = false;
  parts_->disk.restart();
  parts_->network.set_down(false);
}

SimWorld::SimWorld(std::uint64_t seed)
    : scheduler_(std::make_unique<SimScheduler>(seed)),
      wire_(std::make_unique<SimWire>(*scheduler_)) {}

SimWorld::~SimWorld() {
  wire_->heal();
  for (const auto& node : nodes_) node->crash();
  bool more = true;
  for (std::uint64_t steps = 0; more && steps < steps_max; ++steps) {
    more = scheduler_->step(scheduler_->now());
    if (more) continue;
    more = scheduler_->drop_timers();
    for (const auto& node : nodes_) {
      for (const auto& shard : node->parts_->shards) more |= shard->drop_timers();
    }
  }
}

SimEnvironment& SimWorld::add_node(std::string name, unsigned shards) {
  MR_ASSERT(shards > 0);
  auto host = "10.0.0." + std::to_string(nodes_.size() + 1);
  auto parts = std::make_unique<SimEnvironment::Parts>(*scheduler_, *wire_, std::move(name),
                                                       std::move(host), shards);
  nodes_.push_back(std::unique_ptr<SimEnvironment>(new SimEnvironment(std::move(parts))));
  return *nodes_.back();
}

MonoTime SimWorld::now() const noexcept { return scheduler_->now(); }
SimRandom& SimWorld::random() noexcept { return scheduler_->random(); }
const SimTrace& SimWorld::trace() const noexcept { return scheduler_->trace(); }
void SimWorld::note(std::string text) { scheduler_->note(text); }

bool SimWorld::run_until(const std::function<bool()>& condition, Duration limit) {
  const auto until = scheduler_->now() + limit;
  for (std::uint64_t steps = 0; steps < steps_max; ++steps) {
    if (condition()) return true;
    if (!scheduler_->step(until)) return condition();
  }
  return false;
}

void SimWorld::run_for(Duration time) {
  run_until([] { return false; }, time);
}

void SimWorld::block(const SimEnvironment& a, const SimEnvironment& b) {
  scheduler_->note("block " + a.name() + " and " + b.name());
  wire_->block(a.host(), b.host());
}

void SimWorld::block_one_way(const SimEnvironment& from, const SimEnvironment& to) {
  scheduler_->note("block " + from.name() + " to " + to.name());
  wire_->block_one_way(from.host(), to.host());
}

void SimWorld::heal() {
  scheduler_->note("heal");
  wire_->heal();
}

void SimWorld::delay(const SimEnvironment& node, Duration longest) {
  scheduler_->note("delay " + node.name());
  wire_->delay(node.host(), longest);
}

void SimWorld::cut(const SimEnvironment& a, const SimEnvironment& b) {
  wire_->cut(a.host(), b.host());
}

void SimWorld::run_outside(const std::function<void()>& job) { scheduler_->run_outside(job); }

}  // namespace millrace::testing
