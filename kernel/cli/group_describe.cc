// millrace group describe: who reads what, how far they have come, and how far behind they are.
#include <iostream>
#include <set>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/utf8.h>

#include "kernel/cli/group_client.h"
#include "kernel/cli/group_verbs.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct Line {
  TopicPartition partition;
  std::optional<Offset> committed;
  std::optional<Offset> end;
  const GroupMember* member = nullptr;  ///< none: nobody reads it now

  std::optional<std::int64_t> lag() const {
    if (!committed || !end) return std::nullopt;
    return std::max<std::int64_t>(*end - *committed, 0);
  }
};

std::optional<Offset> at(const std::map<TopicPartition, Offset>& offsets,
                         const TopicPartition& partition) {
  const auto found = offsets.find(partition);
  return found == offsets.end() ? std::nullopt : std::optional(found->second);
}

/// Of every partition that is assigned or has an offset.
Task<std::vector<Line>> lines_of(GroupClient& client, const GroupView& view) {
  MR_CO_TRY(const auto committed, co_await client.committed(view.group));
  std::map<TopicPartition, const GroupMember*> readers;
  for (const auto& [partition, offset] : committed) readers[partition] = nullptr;
  for (const auto& member : view.members) {
    for (const auto& partition : member.partitions) readers[partition] = &member;
  }
  std::vector<TopicPartition> partitions;
  for (const auto& [partition, reader] : readers) partitions.push_back(partition);
  auto asking =
      client.offsets_at(std::move(partitions), static_cast<std::int64_t>(OffsetSpec::latest));
  MR_CO_TRY(const auto ends, co_await std::move(asking));
  std::vector<Line> lines;
  for (const auto& [partition, reader] : readers) {
    lines.push_back({partition, at(committed, partition), at(ends, partition), reader});
  }
  co_return lines;
}

json::value or_null(const std::optional<std::int64_t>& number) {
  return number ? json::value(*number) : json::value(nullptr);
}
json::value or_null(const std::optional<Offset>& offset) {
  return offset ? json::value(offset->value) : json::value(nullptr);
}
json::value or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

void print_as_json(const GroupView& view, const std::vector<Line>& lines) {
  json::array members;
  for (const auto& member : view.members) {
    members.emplace_back(json::object{{"member_id", member.member_id},
                                      {"instance_id", or_null(member.instance_id)},
                                      {"client_id", member.client_id},
                                      {"host", member.host},
                                      {"partitions", member.partitions.size()}});
  }
  json::array partitions;
  for (const auto& line : lines) {
    partitions.emplace_back(
        json::object{{"topic", line.partition.topic},
                     {"partition", line.partition.partition},
                     {"committed", or_null(line.committed)},
                     {"end", or_null(line.end)},
                     {"lag", or_null(line.lag())},
                     {"member_id", or_null(line.member ? line.member->member_id : "")},
                     {"client_id", or_null(line.member ? line.member->client_id : "")},
                     {"host", or_null(line.member ? line.member->host : "")}});
  }
  print_json(json::object{{"group", view.group},
                          {"state", view.state},
                          {"type", view.type},
                          {"assignor", view.assignor},
                          {"coordinator", view.coordinator},
                          {"members", std::move(members)},
                          {"partitions", std::move(partitions)}});
}

template <class T>
std::string or_dash(const std::optional<T>& number) {
  if (!number) return "-";
  if constexpr (std::is_same_v<T, Offset>) {
    return std::to_string(number->value);
  } else {
    return std::to_string(*number);
  }
}

void print_as_table(const GroupView& view, const std::vector<Line>& lines) {
  std::cout << "group " << shown(view.group) << ", " << view.type << ", " << view.state;
  if (!view.assignor.empty()) std::cout << ", assigned by " << shown(view.assignor);
  std::cout << ", at broker " << view.coordinator << "\n\n";
  Table table({"TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER", "HOST", "CLIENT"});
  for (const auto& line : lines) {
    table.add({line.partition.topic, std::to_string(line.partition.partition),
               or_dash(line.committed), or_dash(line.end), or_dash(line.lag()),
               line.member ? line.member->member_id : "-", line.member ? line.member->host : "-",
               line.member ? line.member->client_id : "-"});
  }
  for (const auto& member : view.members) {
    if (!member.partitions.empty()) continue;
    table.add({"-", "-", "-", "-", "-", member.member_id, member.host, member.client_id});
  }
  table.print();
}

Task<> describe(Environment& environment, const Context& context, std::string name) {
  MR_CO_TRY(auto client, co_await GroupClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto view, co_await client->describe(name));
  MR_CO_TRY(const auto lines, co_await lines_of(*client, view));
  if (context.output == OutputFormat::json) {
    print_as_json(view, lines);
  } else {
    print_as_table(view, lines);
  }
  co_return {};
}

}  // namespace

void add_group_describe_verb(CLI::App& group, Context& context, Action& action) {
  auto* verb = group.add_subcommand("describe", "show a group's members, offsets and lag");
  const auto name = std::make_shared<std::string>();
  verb->add_option("NAME", *name)->required()->check(not_empty);
  add_examples(*verb, {"millrace group describe readers"});
  verb->callback([&context, &action, name] {
    action = [&context, name] {
      return run([&](Environment& environment) { return describe(environment, context, *name); });
    };
  });
}

}  // namespace millrace::kernel::cli
