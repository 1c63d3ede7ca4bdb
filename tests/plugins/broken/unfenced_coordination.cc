// Skips a fence: the lease never ends, and who has lost its session is not told so.
#include <chrono>

#include <millrace/system_plugin.h>

#include "plugins/coordination/zookeeper/zookeeper.h"

namespace millrace::broken {
namespace {

class EndlessLease final : public Lease {
 public:
  EndlessLease(std::unique_ptr<Lease> sound, Environment& environment)
      : sound_(std::move(sound)), environment_(environment) {}
  MonoTime valid_until() const noexcept override {
    return environment_.clock().now() + std::chrono::hours(1);
  }
  std::int64_t epoch() const noexcept override { return sound_->epoch(); }
  Task<> lost() override { co_return co_await never_.wait(); }

 private:
  std::unique_ptr<Lease> sound_;
  Environment& environment_;
  Event never_;
};

class UnfencedCoordination final : public Coordination {
 public:
  UnfencedCoordination(std::unique_ptr<Coordination> sound, Environment& environment)
      : sound_(std::move(sound)), environment_(environment) {}

  Task<std::unique_ptr<Lease>> join(Member self) override {
    MR_CO_TRY(auto lease, co_await sound_->join(self));
    co_return std::make_unique<EndlessLease>(std::move(lease), environment_);
  }
  Task<Versioned> get(std::string key) override { return unfenced(sound_->get(std::move(key))); }
  Task<std::vector<std::string>> list(std::string prefix) override {
    return unfenced(sound_->list(std::move(prefix)));
  }
  Task<std::vector<Version>> commit(std::vector<Write> writes) override {
    return unfenced(sound_->commit(std::move(writes)));
  }
  Task<Seen> next_change(std::string prefix, Seen seen) override {
    return unfenced(sound_->next_change(std::move(prefix), seen));
  }

 private:
  template <class T>
  Task<T> unfenced(Task<T> asking) {
    auto answer = co_await std::move(asking);
    if (!answer && answer.error().code == Errc::fenced) MR_CO_CHECK(co_await never_.wait());
    co_return std::move(answer);
  }

  std::unique_ptr<Coordination> sound_;
  Environment& environment_;
  Event never_;
};

constexpr MillraceOption declared_options[] = {
    {"connect", MILLRACE_OPTION_TEXT, nullptr, "127.0.0.1:2181", unbounded_min, unbounded_max,
     nullptr, "The servers.", 0},
    {"session-timeout", MILLRACE_OPTION_INTEGER, "ms", "6000", 1'000, 300'000, nullptr,
     "When a broker is silent for so long, the others take it for dead.", 0},
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0}};

class UnfencedPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    const auto& options = host.options();
    MR_TRY(auto connect, zookeeper::parse_connect(options.text("connect")));
    const std::chrono::milliseconds timeout(options.integer("session-timeout"));
    auto sound = std::make_unique<zookeeper::ZooKeeper>(
        host.environment(), host.log(),
        zookeeper::Settings{.connect = std::move(connect),
                            .session_timeout = timeout,
                            .digest = {},
                            .data = std::string(host.setting("broker.data"))});
    return registrar.add(
        std::make_unique<UnfencedCoordination>(std::move(sound), host.environment()));
  }
};

}  // namespace
}  // namespace millrace::broken

MILLRACE_SYSTEM_PLUGIN(millrace::broken::UnfencedPlugin, .kind = "coordination",
                       .id = "org.example.coordination.unfenced", .version = "0.1.0",
                       .options = millrace::broken::declared_options);
