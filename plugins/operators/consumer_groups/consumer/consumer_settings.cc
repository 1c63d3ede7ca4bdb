#include "consumer_settings.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "../settings.h"
#include "assignor.h"

namespace millrace::consumer_groups {
namespace {

using std::chrono::milliseconds;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\"";
  const auto from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

/// Names that are no assignor of ours are passed over: a broker's setting may name Java classes.
std::vector<std::string> assignors_of(std::string_view setting) {
  std::vector<std::string> names;
  while (!setting.empty()) {
    const auto comma = std::min(setting.find(','), setting.size());
    const auto name = trimmed(setting.substr(0, comma));
    if (find_assignor(name) != nullptr && std::ranges::find(names, name) == names.end()) {
      names.emplace_back(name);
    }
    setting.remove_prefix(std::min(comma + 1, setting.size()));
  }
  if (names.empty()) names = {"uniform", "range"};
  return names;
}

MigrationPolicy policy_of(std::string_view setting) {
  const std::string_view name = trimmed(setting);
  const auto is = [&](std::string_view other) {
    return std::ranges::equal(name, other, [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    });
  };
  if (is("disabled")) return {.upgrade = false, .downgrade = false};
  if (is("upgrade")) return {.upgrade = true, .downgrade = false};
  if (is("downgrade")) return {.upgrade = false, .downgrade = true};
  return {};
}

}  // namespace

ConsumerSettings ConsumerSettings::read(const Context& context) {
  const auto span = [&](std::string_view name, std::int64_t otherwise) {
    return milliseconds(number_of(context, name, otherwise));
  };
  return {
      .session_timeout = span("group.consumer.session.timeout.ms", 45'000),
      .heartbeat_interval = span("group.consumer.heartbeat.interval.ms", 5'000),
      .members_max =
          static_cast<std::size_t>(number_of(context, "group.consumer.max.size", 0x7fffffff)),
      .assignors = assignors_of(context.setting("group.consumer.assignors")),
      .migration = policy_of(context.setting("group.consumer.migration.policy")),
      .assignment_interval = span("group.consumer.assignment.interval.ms", 1'000),
      .regex_refresh_interval = span("group.consumer.regex.refresh.interval.ms", 600'000),
      .session_timeout_min = span("group.consumer.min.session.timeout.ms", 45'000),
      .session_timeout_max = span("group.consumer.max.session.timeout.ms", 60'000),
      .heartbeat_interval_min = span("group.consumer.min.heartbeat.interval.ms", 5'000),
      .heartbeat_interval_max = span("group.consumer.max.heartbeat.interval.ms", 15'000),
  };
}

GroupTimeNames::GroupTimeNames(std::string_view group) {
  std::string name = "groups/";
  name.append(group).append("/");
  session_timeout = name + "consumer.session.timeout.ms";
  heartbeat_interval = name + "consumer.heartbeat.interval.ms";
  assignment_interval = name + "consumer.assignment.interval.ms";
}

GroupTimes times_of(const GroupTimeNames& names, const ConsumerSettings& settings,
                    const Context& context) {
  GroupTimes times{settings.session_timeout, settings.heartbeat_interval,
                   settings.assignment_interval};
  const auto own = [&](std::string_view name) -> std::optional<Duration> {
    const auto number = number_of(context, name, -1);
    return number < 0 ? std::nullopt : std::optional<Duration>(milliseconds(number));
  };
  // The broker's bounds may have moved since; whoever set them may have mixed them up.
  const auto within = [](Duration value, Duration least, Duration most) {
    return std::max(std::min(value, most), least);
  };
  if (const auto session = own(names.session_timeout)) {
    times.session_timeout =
        within(*session, settings.session_timeout_min, settings.session_timeout_max);
  }
  if (const auto interval = own(names.heartbeat_interval)) {
    times.heartbeat_interval =
        within(*interval, settings.heartbeat_interval_min, settings.heartbeat_interval_max);
  }
  if (const auto interval = own(names.assignment_interval)) {
    times.assignment_interval = *interval;
  }
  return times;
}

}  // namespace millrace::consumer_groups
