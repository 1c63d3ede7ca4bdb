// millrace aggregate list|replace: over the admin API.
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/admin_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct AggregateVerb {
  std::string admin = "127.0.0.1:9644";
  std::string name;
  std::string file;
};

Task<> list(Environment& environment, const Context& context, const AggregateVerb& verb) {
  auto asking = ask_admin(environment.network(), verb.admin, "GET", "/admin/aggregates");
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (context.output == OutputFormat::json) {
    print_json(answer);
    co_return {};
  }
  Table table({"AGGREGATE", "TOPIC", "PLUGIN", "VERSION", "PARTITIONS", "SERVING", "FILE"});
  const auto* all = answer.if_contains("aggregates");
  if (all != nullptr && all->is_array()) {
    for (const auto& element : all->get_array()) {
      if (!element.is_object()) continue;
      const auto& one = element.get_object();
      table.add({text_of(one, "name"), text_of(one, "topic"), text_of(one, "plugin"),
                 text_of(one, "version"), text_of(one, "partitions"), text_of(one, "serving"),
                 text_of(one, "path")});
    }
  }
  table.print();
  co_return {};
}

Task<> replace(Environment& environment, const Context& context, const AggregateVerb& verb) {
  // The brokers' working folders may be others.
  const auto file = std::filesystem::absolute(verb.file).string();
  auto asking = ask_admin(environment.network(), verb.admin, "PATCH",
                          "/admin/aggregates/" + path_segment(verb.name),
                          json::serialize(json::object{{"file", file}}));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  auto where = replaced_where(answer);
  if (context.output == OutputFormat::json) {
    print_json(answer);
    co_return std::move(where.everywhere);
  }
  const auto starts_from = text_of(answer, "starts_from");
  std::cout << verb.name << " runs version " << text_of(answer, "version") << " of " << file
            << where.at;
  if (starts_from != file) {
    std::cout << " until " << (where.at.empty() ? "this broker" : "one of them")
              << " restarts; to keep it, put the file in place of " << starts_from;
  }
  std::cout << '\n';
  co_return std::move(where.everywhere);
}

}  // namespace

void add_aggregate_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb =
      app.add_subcommand("aggregate", "list the aggregates of a broker; replace one while it runs");
  verb->require_subcommand(1);
  const auto chosen = std::make_shared<AggregateVerb>();
  verb->add_option("--admin", chosen->admin, "where the broker's transport http listens")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  const auto does = [&app, verb, &context, &action, chosen](CLI::App* sub, auto body) {
    sub->callback([&app, verb, &context, &action, chosen, body] {
      require_admin(app, *verb);
      action = [&context, chosen, body] {
        return run([&](Environment& environment) { return body(environment, context, *chosen); });
      };
    });
  };
  auto* listing = verb->add_subcommand("list", "list what runs, from which file");
  add_examples(*listing, {"millrace aggregate list"});
  does(listing, &list);
  auto* replacing = verb->add_subcommand(
      "replace",
      "let an aggregate go on as another version of its plugin, with the state of its log, at "
      "every broker until that restarts; what does not fit is refused, and the old one goes on");
  replacing->add_option("NAME", chosen->name, "the aggregate")->required()->check(not_empty);
  replacing->add_option("PLUGIN_FILE", chosen->file, "on each broker's machine")
      ->required()
      ->check(not_empty);
  add_examples(*replacing, {"millrace aggregate replace ledger /opt/ledger/2/ledger.so"});
  does(replacing, &replace);
}

}  // namespace millrace::kernel::cli
