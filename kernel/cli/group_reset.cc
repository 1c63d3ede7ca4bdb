// millrace group reset: sets the offsets of a group that nobody is a member of; first it only shows
// what it would do.
#include <algorithm>
#include <charconv>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/datetime.h"
#include "kernel/cli/group_client.h"
#include "kernel/cli/group_verbs.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct Arguments {
  std::string group;
  std::vector<std::string> topics;  // "orders", "orders:0,3"; none: all that have an offset
  bool to_earliest = false;
  bool to_latest = false;
  std::optional<std::int64_t> to_offset;
  std::optional<std::string> to_datetime;
  std::optional<std::int64_t> shift_by;
  bool execute = false;
};

struct Change {
  TopicPartition partition;
  std::optional<Offset> from;
  Offset to;
};

Result<std::int32_t> parse_number(std::string_view text, const std::string& whole) {
  std::int32_t number = -1;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && stopped == text.data() + text.size() && number >= 0) return number;
  return Error{Errc::invalid_argument,
               "--topic " + in_quotes(whole) + ": expected TOPIC, or TOPIC:PARTITION,PARTITION"};
}

/// Topic names have no colon.
Task<std::vector<TopicPartition>> partitions_of(ClusterClient& cluster, std::string wanted) {
  const auto colon = wanted.find(':');
  MR_CO_TRY(const auto topic, co_await cluster.topic(wanted.substr(0, colon)));
  std::vector<TopicPartition> partitions;
  if (colon == std::string::npos) {
    for (const auto& info : topic.partitions) {
      partitions.push_back({topic.topic.name, info.partition});
    }
    co_return partitions;
  }
  std::string_view left = std::string_view(wanted).substr(colon + 1);
  while (true) {
    const auto comma = left.find(',');
    MR_CO_TRY(const auto number, parse_number(left.substr(0, comma), wanted));
    const auto found = std::ranges::find(topic.partitions, number, &PartitionInfo::partition);
    if (found == topic.partitions.end()) {
      co_return no_such_partition(concat("--topic ", in_quotes(wanted), ": partition"), topic,
                                  number);
    }
    partitions.push_back({topic.topic.name, number});
    if (comma == std::string_view::npos) co_return partitions;
    left.remove_prefix(comma + 1);
  }
}

Task<std::vector<TopicPartition>> chosen(GroupClient& client, std::vector<std::string> topics,
                                         CommittedOffsets committed) {
  std::vector<TopicPartition> partitions;
  for (const auto& topic : topics) {
    MR_CO_TRY(auto some, co_await partitions_of(client.cluster(), topic));
    std::ranges::move(some, std::back_inserter(partitions));
  }
  if (topics.empty()) {
    for (const auto& [partition, offset] : committed) partitions.push_back(partition);
  }
  if (partitions.empty()) {
    co_return Error{Errc::invalid_argument,
                    "the group has committed nothing: name what to set with --topic"};
  }
  std::ranges::sort(partitions);
  const auto twice = std::ranges::unique(partitions);
  partitions.erase(twice.begin(), twice.end());
  co_return partitions;
}

/// Where the logs begin or end, each of them; who is just becoming a leader is waited for.
Task<LogOffsets> bounds_of(GroupClient& client, std::vector<TopicPartition> partitions,
                           OffsetSpec which) {
  ClusterClient::Wait wait("a leader of each partition");
  while (true) {
    auto finding = client.offsets_at(partitions, static_cast<std::int64_t>(which));
    MR_CO_TRY(auto found, co_await std::move(finding));
    const auto missing = std::ranges::find_if(
        partitions, [&found](const TopicPartition& one) { return !found.contains(one); });
    if (missing == partitions.end()) co_return std::move(found);
    const TopicName topic{missing->topic, {}};
    MR_CO_CHECK(co_await client.cluster().partitions(topic));  // it may be gone
    auto why = error_of(ErrorCode::leader_not_available, to_string(*missing));
    MR_CO_CHECK(co_await client.cluster().next_try(wait, std::move(why)));
  }
}

/// What is set lies within the log, wherever the arguments point.
Task<std::vector<Change>> changes_of(GroupClient& client, const Arguments& arguments,
                                     CommittedOffsets committed, Timestamp now) {
  MR_CO_TRY(const auto partitions, co_await chosen(client, arguments.topics, committed));
  MR_CO_TRY(const auto first, co_await bounds_of(client, partitions, OffsetSpec::earliest));
  MR_CO_TRY(const auto end, co_await bounds_of(client, partitions, OffsetSpec::latest));
  LogOffsets at_time;
  if (arguments.to_datetime) {
    MR_CO_TRY(const auto time, parse_moment(*arguments.to_datetime, now));
    MR_CO_TRY(at_time, co_await client.offsets_at(partitions, time.ms));
  }
  std::vector<Change> changes;
  for (const auto& partition : partitions) {
    const auto low = first.find(partition);
    const auto high = end.find(partition);
    const auto known = committed.find(partition);
    const auto from = known == committed.end() ? std::nullopt : std::optional(known->second);
    Offset to = high->second;
    if (arguments.to_earliest) to = low->second;
    if (arguments.to_offset) to = Offset{*arguments.to_offset};
    if (arguments.to_datetime) {
      const auto found = at_time.find(partition);
      if (found != at_time.end()) to = found->second;  // else nothing is as new as that
    }
    if (arguments.shift_by) {
      if (!from) {
        co_return Error{Errc::invalid_argument,
                        "--shift-by: nothing is committed for " + to_string(partition)};
      }
      // The sum of two numbers of a user may not fit.
      if (__builtin_add_overflow(from->value, *arguments.shift_by, &to.value)) {
        to.value = *arguments.shift_by < 0 ? 0 : high->second.value;
      }
    }
    changes.push_back({partition, from, std::clamp(to, low->second, high->second)});
  }
  co_return changes;
}

void print(const Context& context, const Arguments& arguments, const std::vector<Change>& changes) {
  if (context.output == OutputFormat::json) {
    json::array partitions;
    for (const auto& change : changes) {
      const auto from = change.from ? json::value(change.from->value) : json::value(nullptr);
      partitions.emplace_back(json::object{{"topic", change.partition.topic},
                                           {"partition", change.partition.partition},
                                           {"from", from},
                                           {"to", change.to.value}});
    }
    print_json(json::object{{"group", arguments.group},
                            {"executed", arguments.execute},
                            {"partitions", std::move(partitions)}});
    return;
  }
  Table table({"TOPIC", "PARTITION", "COMMITTED", "NEW"});
  for (const auto& change : changes) {
    table.add({change.partition.topic, std::to_string(change.partition.partition),
               change.from ? std::to_string(change.from->value) : "-",
               std::to_string(change.to.value)});
  }
  table.print();
  if (!arguments.execute) std::cout << "\nnothing was changed; --execute does it\n";
}

Task<> refuse_while_active(GroupClient& client, std::string group) {
  const auto view = co_await client.describe(group);
  if (!view) {
    // One that does not exist yet may be given offsets to start from.
    if (view.error().code == Errc::not_found) co_return {};
    co_return view.error();
  }
  if (!view->is_active()) co_return {};
  co_return error_of(ErrorCode::non_empty_group,
                     "group " + in_quotes(group) + " is " + view->state + " with " +
                         std::to_string(view->members.size()) +
                         " members, who would overwrite its offsets: stop them first");
}

Task<> reset(Environment& environment, const Context& context, Arguments arguments) {
  const int targets = static_cast<int>(arguments.to_earliest) +
                      static_cast<int>(arguments.to_latest) +
                      static_cast<int>(arguments.to_offset.has_value()) +
                      static_cast<int>(arguments.to_datetime.has_value()) +
                      static_cast<int>(arguments.shift_by.has_value());
  if (targets != 1) {
    co_return Error{Errc::invalid_argument,
                    "expected one of --to-earliest, --to-latest, --to-offset, --to-datetime and "
                    "--shift-by"};
  }
  const auto now = environment.clock().wall();
  if (arguments.to_datetime) MR_CO_CHECK(parse_moment(*arguments.to_datetime, now));
  MR_CO_TRY(auto client, co_await GroupClient::connect(environment.network(), context.bootstrap));
  MR_CO_CHECK(co_await refuse_while_active(*client, arguments.group));
  MR_CO_TRY(auto committed, co_await client->committed(arguments.group));
  auto planning = changes_of(*client, arguments, std::move(committed), now);
  MR_CO_TRY(const auto changes, co_await std::move(planning));
  if (arguments.execute) {
    CommittedOffsets offsets;
    for (const auto& change : changes) offsets.emplace(change.partition, change.to);
    MR_CO_CHECK(co_await client->commit(arguments.group, std::move(offsets)));
  }
  print(context, arguments, changes);
  co_return {};
}

}  // namespace

void add_group_reset_verb(CLI::App& group, Context& context, Action& action) {
  auto* verb = group.add_subcommand(
      "reset",
      "set the offsets of a group without members; shows what it would do until --execute");
  const auto wanted = std::make_shared<Arguments>();
  verb->add_option("NAME", wanted->group)->required()->check(not_blank);
  verb->add_option("--topic", wanted->topics, "default: all that have an offset; may be repeated")
      ->type_name("TOPIC[:PARTITION,...]")
      ->allow_extra_args(false);
  verb->add_flag("--to-earliest", wanted->to_earliest, "to the oldest message");
  verb->add_flag("--to-latest", wanted->to_latest, "behind the newest message");
  verb->add_option("--to-offset", wanted->to_offset, "to an offset, or the nearest that there is")
      ->type_name("OFFSET")
      ->check(whole_number<std::int64_t>(0));
  verb->add_option(
          "--to-datetime", wanted->to_datetime,
          "to the first message from then on: 2026-11-29T10:00:00Z, @MILLISECONDS, or how long "
          "ago, such as 90s, 15m, 2h, 7d")
      ->type_name("TIME");
  verb->add_option("--shift-by", wanted->shift_by, "forward, or back when negative")
      ->type_name("MESSAGES")
      ->check(whole_number<std::int64_t>(std::numeric_limits<std::int64_t>::min()));
  verb->add_flag("--execute", wanted->execute, "do it");
  add_examples(*verb, {"millrace group reset readers --to-earliest",
                       "millrace group reset readers --to-datetime 2026-11-29T10:00:00Z --execute",
                       "millrace group reset readers --topic orders:0,3 --shift-by -10 --execute"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return reset(environment, context, *wanted); });
    };
  });
}

}  // namespace millrace::kernel::cli
