#include "broker_metrics.h"

#include <string>
#include <utility>

namespace millrace::http_transport {
namespace {

struct Memory {
  std::size_t used = 0;
  std::size_t max = 0;
  std::size_t waiting = 0;
};

Task<Memory> memory_of(Broker& broker, Shard& shard) {
  const auto& budget = broker.memory(shard);
  co_return Memory{budget.bytes_used(), budget.bytes_max(), budget.waiting()};
}

MetricFamily gauge(const char* name, const char* help) {
  return {name, help, MetricType::gauge, {}};
}

void add(MetricFamily& family, const std::string& shard, std::size_t value) {
  family.samples.push_back(
      {.labels = {{"shard", shard}}, .value = static_cast<double>(value), .counts = {}});
}

}  // namespace

Task<std::vector<MetricFamily>> memory_metrics(const Services& services) {
  auto limit = gauge("millrace_request_memory_limit_bytes",
                     "Memory that requests in flight may take; beyond it nothing is read");
  auto used = gauge("millrace_request_memory_used_bytes", "Memory that requests in flight take");
  auto waiting =
      gauge("millrace_request_memory_waiting", "Connections that wait for memory to read on");
  for (auto* shard : services.environment.shards()) {
    auto look = [broker = &services.broker, shard] { return memory_of(*broker, *shard); };
    auto looking = run_on(*shard, std::move(look));
    MR_CO_TRY(const auto memory, co_await std::move(looking));
    const auto name = std::to_string(shard->index());
    add(limit, name, memory.max);
    add(used, name, memory.used);
    add(waiting, name, memory.waiting);
  }
  std::vector<MetricFamily> families;
  families.push_back(std::move(limit));
  families.push_back(std::move(used));
  families.push_back(std::move(waiting));
  co_return families;
}

}  // namespace millrace::http_transport
