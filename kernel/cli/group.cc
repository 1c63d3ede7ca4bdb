// millrace group list|delete; describe and reset are in files of their own.
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/utf8.h>

#include "kernel/cli/group_client.h"
#include "kernel/cli/group_verbs.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

Task<> list(Environment& environment, const Context& context) {
  MR_CO_TRY(auto client, co_await GroupClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto groups, co_await client->list());
  if (context.output == OutputFormat::json) {
    json::array lines;
    for (const auto& group : groups) {
      lines.emplace_back(json::object{{"group", group.group},
                                      {"state", group.state},
                                      {"type", group.type},
                                      {"protocol_type", group.protocol_type},
                                      {"coordinator", group.coordinator}});
    }
    print_json(json::object{{"groups", std::move(lines)}});
    co_return {};
  }
  Table table({"GROUP", "STATE", "TYPE", "PROTOCOL TYPE", "COORDINATOR"});
  for (const auto& group : groups) {
    table.add({group.group, group.state, group.type, group.protocol_type,
               std::to_string(group.coordinator)});
  }
  table.print();
  co_return {};
}

struct DeleteArguments {
  std::string group;
  bool execute = false;
};

void print(const Context& context, const DeleteArguments& arguments,
           const CommittedOffsets& committed) {
  if (context.output == OutputFormat::json) {
    json::array partitions;
    for (const auto& [partition, offset] : committed) {
      partitions.emplace_back(json::object{{"topic", partition.topic},
                                           {"partition", partition.partition},
                                           {"committed", offset.value}});
    }
    print_json(json::object{{"group", arguments.group},
                            {"deleted", arguments.execute},
                            {"partitions", std::move(partitions)}});
    return;
  }
  if (arguments.execute) {
    std::cout << "deleted group " << shown(arguments.group) << " and its " << committed.size()
              << " offsets\n";
    return;
  }
  if (!committed.empty()) {
    Table table({"TOPIC", "PARTITION", "COMMITTED"});
    for (const auto& [partition, offset] : committed) {
      table.add(
          {partition.topic, std::to_string(partition.partition), std::to_string(offset.value)});
    }
    table.print();
    std::cout << '\n';
  }
  std::cout << "group " << shown(arguments.group) << " would be deleted with its "
            << committed.size() << " offsets; --execute does it\n";
}

// First it only shows what would go, as `reset` does.
Task<> remove(Environment& environment, const Context& context, DeleteArguments arguments) {
  MR_CO_TRY(auto client, co_await GroupClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto view, co_await client->describe(arguments.group));
  if (view.is_active()) {
    co_return error_of(ErrorCode::non_empty_group,
                       "group " + in_quotes(arguments.group) + " is " + view.state + " with " +
                           std::to_string(view.members.size()) + " members: stop them first");
  }
  MR_CO_TRY(const auto committed, co_await client->committed(arguments.group));
  if (arguments.execute) MR_CO_CHECK(co_await client->remove(arguments.group));
  print(context, arguments, committed);
  co_return {};
}

}  // namespace

void add_group_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("group", "list, describe, reset and delete consumer groups");
  verb->require_subcommand(1);
  auto* list_verb = verb->add_subcommand("list", "list all groups");
  add_examples(*list_verb, {"millrace group list"});
  list_verb->callback([&context, &action] {
    action = [&context] {
      return run([&](Environment& environment) { return list(environment, context); });
    };
  });
  add_group_describe_verb(*verb, context, action);
  add_group_reset_verb(*verb, context, action);

  auto* delete_verb = verb->add_subcommand(
      "delete",
      "delete a group without members, and its offsets; shows what would go until --execute");
  const auto wanted = std::make_shared<DeleteArguments>();
  delete_verb->add_option("NAME", wanted->group)->required()->check(not_empty);
  delete_verb->add_flag("--execute", wanted->execute, "do it");
  add_examples(*delete_verb,
               {"millrace group delete readers", "millrace group delete readers --execute"});
  delete_verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return remove(environment, context, *wanted); });
    };
  });
}

}  // namespace millrace::kernel::cli
