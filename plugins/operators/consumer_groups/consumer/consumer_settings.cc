#include "consumer_settings.h"

#include <algorithm>
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
  };
}

}  // namespace millrace::consumer_groups
