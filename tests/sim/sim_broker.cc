#include "sim_broker.h"

#include <utility>

#include "kernel/config/config.h"
#include "kernel/host/plan.h"
#include "kernel/partition/topic_config.h"

namespace millrace::testing {

namespace {

constexpr Duration stop_grace = std::chrono::seconds(3);

Result<kernel::Plan> plan_of(std::vector<std::string> sets) {
  auto config = kernel::Config::load({.path = "", .sets = std::move(sets)});
  if (!config) return kernel::to_error(config.error());
  auto plan = kernel::make_plan(*config, kernel::broker_defaults(), kernel::topic_table_settings());
  if (!plan) return kernel::to_error(plan.error());
  return *std::move(plan);
}

}  // namespace

SimBroker::SimBroker(SimWorld& world, SimEnvironment& node, std::vector<std::string> sets)
    : world_(world), node_(node), sets_(std::move(sets)) {
  sets_.insert(sets_.end(), {"broker.data=/data", "transport.kafka.listen=0.0.0.0:9092",
                             "transport.kafka.advertise=" + node.host() + ":9092",
                             "transport.http.listen=0.0.0.0:9644"});
}

SimBroker::~SimBroker() { static_cast<void>(stop()); }

Result<> SimBroker::start() {
  MR_TRY(auto plan, plan_of(sets_));
  engine_ = std::make_unique<kernel::Engine>(std::move(plan),
                                             kernel::HostServices{node_, log_, metrics_});
  if (service_) {
    coordination_ = service_->connect(node_);
    engine_->use(*coordination_);
  }
  return world_.run(node_.control(), [this] { return engine_->start(); });
}

Result<> SimBroker::stop() {
  if (!engine_) return Error{Errc::closed, "the broker does not run"};
  auto stopped = world_.run(node_.control(), [this] { return engine_->stop(stop_grace); });
  // As millraced does: by a thread that is none of the shards'.
  world_.run_outside([this] { engine_.reset(); });
  coordination_.reset();
  return stopped;
}

void SimBroker::crash() {
  node_.crash();
  clear_away();
}

void SimBroker::kill() {
  node_.kill();
  clear_away();
}

// The ghost cannot write what a stop would like to: the error is no surprise.
void SimBroker::clear_away() {
  static_cast<void>(stop());
  node_.restart();
}

}  // namespace millrace::testing
