// The shipped plugin under the contract of its kind, on a real server.
#include <millrace/testing/coordination_contract.h>
#include <millrace/testing/fake_host.h>

#include "broker_stand_in.h"

namespace millrace::testing {
namespace {

using zookeeper::Outside;
using zookeeper::PumpedEnvironment;
using zookeeper::TemporaryFolder;

class OnARealServer final : public CoordinationSubject {
 public:
  OnARealServer() { load(); }
  ~OnARealServer() override {
    plugin_.reset();
    environment_.control().drain();
  }

  Coordination& coordination() override { return *plugin_->registered().coordination; }
  void restart() override {
    plugin_.reset();
    environment_.control().drain();
    load();
  }
  Shard& control() override { return environment_.control(); }
  void run_until(const std::function<bool()>& done) override {
    // Nothing is left to do when the server has answered often enough and nothing came of it: what
    // it has to say of watches, and answers to earlier requests, stand before its later answers.
    int answers = 0;
    std::optional<Pending<std::vector<std::string>>> asked;
    const auto quiet = [&] {
      if (asked && !asked->is_ready()) return false;
      if (asked && asked->await_resume()) ++answers;
      if (answers == answers_until_quiet) return true;
      asked = start(control(), coordination().list("/"));
      return false;
    };
    environment_.control().run_until([&] { return done() || quiet(); }, std::chrono::minutes(1));
  }

 private:
  static constexpr int answers_until_quiet = 100;

  void load() {
    auto loaded = load_plugin(MILLRACE_PLUGIN_DIR "/coordination/zookeeper.so", environment_,
                              {{"connect", zookeeper::shared_server().address() + chroot_},
                               {"session-timeout", std::int64_t{2000}}},
                              {{"broker.data", folder_.path()}});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    plugin_.emplace(*std::move(loaded));
  }

  std::string chroot_ = zookeeper::fresh_chroot();
  TemporaryFolder folder_;
  PumpedEnvironment environment_{Outside::get()};
  std::optional<LoadedPlugin> plugin_;
};

INSTANTIATE_TEST_SUITE_P(RealServer, CoordinationContract,
                         ::testing::Values(CoordinationCase{
                             "zookeeper", [] { return std::make_unique<OnARealServer>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace millrace::testing
