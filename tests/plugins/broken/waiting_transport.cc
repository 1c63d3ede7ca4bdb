// A transport that listens to nobody and forgets a task: it waits for memory of a shard that the
// task itself holds, and still does when the broker has stopped.
#include <millrace/system_plugin.h>

namespace {

using namespace millrace;

Task<> wait_for_ever(MemoryBudget& memory) {
  auto taking = memory.acquire(memory.bytes_max());
  MR_CO_TRY(const auto all, co_await std::move(taking));
  auto taking_more = memory.acquire(1);
  MR_CO_TRY(const auto more, co_await std::move(taking_more));
  co_return {};
}

class WaitingTransport final : public Transport {
 public:
  explicit WaitingTransport(Host& host) : host_(host) {}

  Task<Endpoint> listen(Broker& broker) override {
    auto& shard = *host_.environment().shards().front();
    shard.post([&shard, &broker] { spawn(shard, wait_for_ever(broker.memory(shard)), "waits"); });
    co_return Endpoint{};
  }
  Task<> stop(Duration) override { co_return {}; }

 private:
  Host& host_;
};

class WaitingPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    return registrar.add(std::make_unique<WaitingTransport>(host));
  }
};

}  // namespace

MILLRACE_SYSTEM_PLUGIN(WaitingPlugin, .kind = "transport", .id = "org.example.transport.waiting",
                       .version = "0.1.0");
