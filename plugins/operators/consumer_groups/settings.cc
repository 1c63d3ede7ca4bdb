#include "settings.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace millrace::consumer_groups {
namespace {

/// More than anybody means, and less than a Duration has room for.
constexpr std::chrono::hours forever(24 * 365 * 100);

/// A setting's `number` of units.
template <class Unit>
Duration span(std::int64_t number) {
  constexpr auto number_max = std::chrono::duration_cast<Unit>(forever).count();
  return Unit(std::min<std::int64_t>(number, number_max));
}

}  // namespace

std::int64_t number_of(const Context& context, std::string_view name, std::int64_t otherwise) {
  const auto text = context.setting(name);
  if (text.empty()) return otherwise;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : otherwise;
}

Settings Settings::read(const Context& context) {
  const auto number = [&](std::string_view name, std::int64_t otherwise) {
    return number_of(context, name, otherwise);
  };
  using std::chrono::milliseconds;
  using std::chrono::minutes;
  return {
      .session_timeout_min = span<milliseconds>(number("group.min.session.timeout.ms", 6'000)),
      .session_timeout_max = span<milliseconds>(number("group.max.session.timeout.ms", 1'800'000)),
      .initial_rebalance_delay =
          span<milliseconds>(number("group.initial.rebalance.delay.ms", 3'000)),
      .members_max = static_cast<std::size_t>(number("group.max.size", 0x7fffffff)),
      .message_bytes_max = static_cast<std::size_t>(number("message.max.bytes", 1'048'588)),
      .consumer = ConsumerSettings::read(context),
      .metadata_bytes_max = static_cast<std::size_t>(number("offset.metadata.max.bytes", 4'096)),
      .offsets_retention = span<minutes>(number("offsets.retention.minutes", 10'080)),
      .retention_check_interval =
          span<milliseconds>(number("offsets.retention.check.interval.ms", 600'000)),
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
