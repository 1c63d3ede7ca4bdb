#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include <millrace/system_plugin.h>

#include "coordinator.h"
#include "monitor.h"
#include "service.h"

namespace millrace::consumer_groups {
namespace {

std::int64_t number(const Host& host, std::string_view setting, std::int64_t otherwise) {
  const auto text = host.setting(setting);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && !text.empty() ? value : otherwise;
}

class Factory final : public AggregateFactory {
 public:
  Factory(AggregateDeclaration declared, Monitor& monitor)
      : declared_(std::move(declared)), monitor_(monitor) {}

  AggregateDeclaration declaration() const override { return declared_; }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition& /*partition*/) override {
    return std::make_unique<Coordinator>(monitor_);
  }

 private:
  const AggregateDeclaration declared_;
  Monitor& monitor_;
};

/// As the topic's own setting names it.
std::string codec(const Host& host) {
  const auto id = static_cast<CompressionId>(number(host, "offsets.topic.compression.codec", 0));
  return std::string(id == CompressionId::none ? "producer" : name_of(id));
}

/// A topic under Kafka's name and with its settings, so that either broker can go on with it.
AggregateDeclaration declaration(const Host& host) {
  return {
      .name = std::string(aggregate_name),
      .topic = "__consumer_offsets",
      .partitions = static_cast<std::int32_t>(number(host, "offsets.topic.num.partitions", 50)),
      .replication_factor =
          static_cast<std::int16_t>(number(host, "offsets.topic.replication.factor", 3)),
      .settings = {{"cleanup.policy", "compact"},
                   {"compression.type", codec(host)},
                   {"segment.bytes",
                    std::to_string(number(host, "offsets.topic.segment.bytes", 104'857'600))}},
  };
}

class ConsumerGroupsPlugin final : public Plugin, public ServiceProvider {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    service_.emplace(host.environment());
    monitor_.emplace(host.log(), host.metrics());
    return registrar.add(std::make_unique<Factory>(declaration(host), *monitor_));
  }

  void* extension(std::string_view id) noexcept override {
    return id == service_provider_id ? static_cast<ServiceProvider*>(this) : nullptr;
  }

  Result<> connect(Broker& broker) override {
    auto* aggregates = broker.service<Aggregates>();
    if (!aggregates) return Error{Errc::unsupported, "this broker runs no aggregates"};
    service_->connect(*aggregates);
    return {};
  }

  void* service(std::string_view id) noexcept override {
    return id == GroupService::service_id ? static_cast<GroupService*>(&*service_) : nullptr;
  }

 private:
  std::optional<Monitor> monitor_;
  std::optional<Service> service_;
};

}  // namespace
}  // namespace millrace::consumer_groups

MILLRACE_SYSTEM_PLUGIN(millrace::consumer_groups::ConsumerGroupsPlugin, .kind = "operators",
                       .id = "org.millrace.operators.consumer_groups", .version = MILLRACE_VERSION,
                       .summary = "consumer groups and their offsets, in __consumer_offsets",
                       .provides = "millrace.groups/1");
