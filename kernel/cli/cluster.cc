// millrace cluster describe, and the verbs beside it
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/cluster_verbs.h"
#include "kernel/cli/context.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

Task<> describe(Environment& environment, const Context& context) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  std::vector<std::string> no_topics;
  MR_CO_TRY(const auto answer, co_await cluster->metadata(std::move(no_topics)));
  if (context.output == OutputFormat::json) {
    json::array brokers;
    for (const auto& broker : answer.brokers) {
      brokers.emplace_back(json::object{{"id", broker.id},
                                        {"address", to_string(broker.address)},
                                        {"rack", broker.rack},
                                        {"controller", broker.id == answer.controller_id}});
    }
    print_json(json::object{{"cluster_id", answer.cluster_id},
                            {"controller_id", answer.controller_id},
                            {"brokers", std::move(brokers)}});
    co_return {};
  }
  std::cout << "cluster " << answer.cluster_id << "\n\n";
  Table table({"BROKER", "ADDRESS", "RACK", "CONTROLLER"});
  for (const auto& broker : answer.brokers) {
    table.add({std::to_string(broker.id), to_string(broker.address), broker.rack,
               broker.id == answer.controller_id ? "yes" : ""});
  }
  table.print();
  co_return {};
}

}  // namespace

void add_cluster_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb =
      app.add_subcommand("cluster", "show the brokers of the cluster, and move what they have");
  verb->require_subcommand(1);
  auto* describing =
      verb->add_subcommand("describe", "show brokers and controller")->alias("brokers");
  add_examples(*describing, {"millrace cluster brokers"});
  describing->callback([&context, &action] {
    action = [&context] {
      return run([&](Environment& environment) { return describe(environment, context); });
    };
  });
  add_status_verb(*verb, context, action);
  add_balance_verb(*verb, context, action);
  add_drain_verb(*verb, context, action);
}

}  // namespace millrace::kernel::cli
