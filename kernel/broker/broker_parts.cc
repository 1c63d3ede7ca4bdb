#include "kernel/broker/broker_parts.h"

#include <charconv>

namespace millrace::kernel {

std::string BrokerConfig::default_of(const std::string& name, std::string_view fallback) const {
  const auto found = defaults.find(name);
  return found == defaults.end() ? std::string(fallback) : found->second;
}

std::int64_t BrokerConfig::number_of(const std::string& name, std::int64_t fallback) const {
  const auto text = default_of(name, "");
  std::int64_t number = fallback;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace millrace::kernel
