// millrace group list|delete; describe and reset are in files of their own.
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/utf8.h>

#include "kernel/cli/group_client.h"
#include "kernel/cli/group_verbs.h"

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

Task<> remove(Environment& environment, const Context& context, std::string name) {
  MR_CO_TRY(auto client, co_await GroupClient::connect(environment.network(), context.bootstrap));
  MR_CO_CHECK(co_await client->remove(name));
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"group", name}, {"deleted", true}});
  } else {
    std::cout << "deleted group " << shown(name) << " and its offsets\n";
  }
  co_return {};
}

}  // namespace

void add_group_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("group", "list, describe, reset and delete consumer groups");
  verb->require_subcommand(1);
  verb->add_subcommand("list", "list all groups")->callback([&context, &action] {
    action = [&context] {
      return run([&](Environment& environment) { return list(environment, context); });
    };
  });
  add_group_describe_verb(*verb, context, action);
  add_group_reset_verb(*verb, context, action);

  auto* delete_verb =
      verb->add_subcommand("delete", "delete a group without members, and its offsets");
  const auto name = std::make_shared<std::string>();
  delete_verb->add_option("NAME", *name)->required();
  delete_verb->callback([&context, &action, name] {
    action = [&context, name] {
      return run([&](Environment& environment) { return remove(environment, context, *name); });
    };
  });
}

}  // namespace millrace::kernel::cli
