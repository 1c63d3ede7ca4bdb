// Coordination on a simulated machine under the contract of its kind: the plugin for one broker,
// and the simulated service. `zookeeper` passes it on a real server, in its own test.
#include <millrace/testing/coordination_contract.h>
#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_coordination.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::testing {
namespace {

class LoadedCoordination final : public CoordinationSubject {
 public:
  explicit LoadedCoordination(std::string path) : path_(std::move(path)) { load(); }

  Coordination& coordination() override { return *plugin_->registered().coordination; }
  void restart() override {
    plugin_.reset();
    world_.run_for(Duration::zero());
    load();
  }
  Shard& control() override { return node_.control(); }
  void run_until(const std::function<bool()>& done) override {
    world_.run_until(done, std::chrono::minutes(1));
  }

 private:
  void load() {
    auto loaded = load_plugin(path_, node_, {}, {{"broker.data", "/data"}});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    plugin_.emplace(*std::move(loaded));
  }

  std::string path_;
  SimWorld world_{1};
  SimEnvironment& node_ = world_.add_node("b1");
  std::optional<LoadedPlugin> plugin_;
};

CoordinationCase plugin(const std::string& name) {
  return {name, [name] {
            return std::make_unique<LoadedCoordination>(MILLRACE_PLUGIN_DIR "/coordination/" +
                                                        name + ".so");
          }};
}

class SimulatedService final : public CoordinationSubject {
 public:
  Coordination& coordination() override { return *ours_; }
  void restart() override {
    ours_.reset();
    world_.run_for(Duration::zero());
    ours_ = service_.connect(node_);
  }
  Shard& control() override { return node_.control(); }
  void run_until(const std::function<bool()>& done) override {
    world_.run_until(done, std::chrono::minutes(1));
  }

 private:
  SimWorld world_{1};
  SimEnvironment& node_ = world_.add_node("b1");
  SimCoordination service_{world_};
  std::unique_ptr<Coordination> ours_ = service_.connect(node_);
};

INSTANTIATE_TEST_SUITE_P(Simulated, CoordinationContract,
                         ::testing::Values(CoordinationCase{
                             "simulated", [] { return std::make_unique<SimulatedService>(); }}),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Plugins, CoordinationContract, ::testing::Values(plugin("standalone")),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace millrace::testing
