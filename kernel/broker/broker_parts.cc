#include "kernel/broker/broker_parts.h"

#include <charconv>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

const std::map<std::string, std::string>& BrokerConfig::defaults_of(
    const ClusterState* now) const noexcept {
  return now && now->defaults ? *now->defaults : defaults;
}

std::string BrokerConfig::default_of(const ClusterState* now, const std::string& name,
                                     std::string_view fallback) const {
  const auto& all = defaults_of(now);
  const auto found = all.find(name);
  return found == all.end() ? std::string(fallback) : found->second;
}

std::int64_t BrokerConfig::number_of(const ClusterState* now, const std::string& name,
                                     std::int64_t fallback) const {
  const auto text = default_of(now, name, "");
  std::int64_t number = fallback;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string BrokerConfig::default_of(const std::string& name, std::string_view fallback) const {
  return default_of(nullptr, name, fallback);
}

std::int64_t BrokerConfig::number_of(const std::string& name, std::int64_t fallback) const {
  return number_of(nullptr, name, fallback);
}

}  // namespace millrace::kernel
