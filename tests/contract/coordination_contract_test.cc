// The shipped coordination plugins under the contract of their kind, on a simulated machine.
#include <millrace/testing/coordination_contract.h>
#include <millrace/testing/fake_host.h>
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

INSTANTIATE_TEST_SUITE_P(Plugins, CoordinationContract, ::testing::Values(plugin("standalone")),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace millrace::testing
