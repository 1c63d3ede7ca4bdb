#include "settings.h"

#include <charconv>

namespace millrace::consumer_groups {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

}  // namespace

std::int64_t number_of(const Context& context, std::string_view name, std::int64_t otherwise) {
  const auto text = context.setting(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : otherwise;
}

Settings Settings::read(const Context& context) {
  const auto number = [&](std::string_view name, std::int64_t otherwise) {
    return number_of(context, name, otherwise);
  };
  return {
      .session_timeout_min = milliseconds(number("group.min.session.timeout.ms", 6'000)),
      .session_timeout_max = milliseconds(number("group.max.session.timeout.ms", 1'800'000)),
      .initial_rebalance_delay = milliseconds(number("group.initial.rebalance.delay.ms", 3'000)),
      .members_max = static_cast<std::size_t>(number("group.max.size", 0x7fffffff)),
      .consumer = ConsumerSettings::read(context),
      .metadata_bytes_max = static_cast<std::size_t>(number("offset.metadata.max.bytes", 4'096)),
      .offsets_retention = minutes(number("offsets.retention.minutes", 10'080)),
      .retention_check_interval =
          milliseconds(number("offsets.retention.check.interval.ms", 600'000)),
  };
}

const Settings& SettingsCache::at(const Context& context) {
  const auto now = context.now();
  if (now >= valid_until_) {
    settings_ = Settings::read(context);
    valid_until_ = now + std::chrono::seconds(1);
  }
  return settings_;
}

}  // namespace millrace::consumer_groups
