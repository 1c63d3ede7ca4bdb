#include "kernel/broker/group_options.h"

#include <algorithm>
#include <iterator>

#include "kernel/partition/config_rows.h"

namespace millrace::kernel {

namespace {

using namespace config_rows;

constexpr GroupOption options[] = {
    {number("consumer.assignment.interval.ms", "ms", nullptr, 0, 15'000,
            "The group is assigned anew at most this often."),
     "group.consumer.assignment.interval.ms"},
    {number("consumer.heartbeat.interval.ms", "ms", nullptr, 1, int32_max,
            "How often the group's members are told to send heartbeats."),
     "group.consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms",
     "group.consumer.max.heartbeat.interval.ms"},
    {number("consumer.session.timeout.ms", "ms", nullptr, 1, int32_max,
            "A member of the group that is not heard of for this long is gone."),
     "group.consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms",
     "group.consumer.max.session.timeout.ms"},
};

}  // namespace

std::span<const GroupOption> group_options() noexcept { return options; }

const GroupOption* find_group_option(std::string_view name) noexcept {
  const auto* found = std::ranges::find(
      options, name, [](const GroupOption& one) { return std::string_view(one.option.name); });
  return found == std::end(options) ? nullptr : found;
}

}  // namespace millrace::kernel
