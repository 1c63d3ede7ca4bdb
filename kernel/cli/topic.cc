// millrace topic create|list|describe|delete
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/kafka/create_topics.h>
#include <millrace/kafka/delete_topics.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

constexpr std::int32_t admin_timeout_ms = 30'000;

struct CreateArguments {
  std::string name;
  std::int32_t partitions = -1;
  std::int16_t replication_factor = -1;
  std::vector<std::string> configs;  // "retention.ms=1000"
  bool if_not_exists = false;
};

Task<> create(Environment& environment, const Context& context, CreateArguments arguments) {
  kafka::CreateTopicsRequest request;
  request.timeout_ms = admin_timeout_ms;
  auto& topic = request.topics.emplace_back();
  topic.name = arguments.name;
  topic.num_partitions = arguments.partitions;
  topic.replication_factor = arguments.replication_factor;
  for (const std::string_view config : arguments.configs) {
    const auto equals = config.find('=');
    if (equals == std::string_view::npos) {
      co_return Error{Errc::invalid_argument,
                      "--config " + std::string(config) + ": expected KEY=VALUE"};
    }
    auto& added = topic.configs.emplace_back();
    added.name = config.substr(0, equals);
    added.value = config.substr(equals + 1);
  }
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto answer, co_await cluster->any().call(std::move(request)));
  if (answer.topics.size() != 1) co_return Error{Errc::corrupt, "the broker answered no topic"};
  const auto& created = answer.topics.front();
  const ErrorCode code{created.error_code};
  const bool existed = code == ErrorCode::topic_already_exists && arguments.if_not_exists;
  if (code != ErrorCode::none && !existed) {
    co_return error_of(code, created.error_message.value_or("topic '" + arguments.name + "'"));
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"topic", arguments.name},
                            {"topic_id", to_string(created.topic_id)},
                            {"created", !existed},
                            {"partitions", created.num_partitions},
                            {"replication_factor", created.replication_factor}});
  } else if (existed) {
    std::cout << "topic " << arguments.name << " exists\n";
  } else {
    std::cout << "created topic " << arguments.name << " with " << created.num_partitions
              << " partitions\n";
  }
  co_return {};
}

Task<> list(Environment& environment, const Context& context) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto answer, co_await cluster->metadata(std::nullopt));
  if (context.output == OutputFormat::json) {
    json::array topics;
    for (const auto& topic : answer.topics) {
      topics.emplace_back(json::object{{"topic", topic.topic.name},
                                       {"topic_id", to_string(topic.topic.id)},
                                       {"internal", topic.internal},
                                       {"partitions", topic.partitions.size()}});
    }
    print_json(json::object{{"topics", std::move(topics)}});
    co_return {};
  }
  Table table({"TOPIC", "PARTITIONS", "REPLICAS"});
  for (const auto& topic : answer.topics) {
    const auto replicas = topic.partitions.empty() ? 0 : topic.partitions.front().replicas.size();
    table.add(
        {topic.topic.name, std::to_string(topic.partitions.size()), std::to_string(replicas)});
  }
  table.print();
  co_return {};
}

std::string join(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

Task<> describe(Environment& environment, const Context& context, std::string name) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto topic, co_await cluster->topic(name));
  if (context.output == OutputFormat::json) {
    json::array partitions;
    for (const auto& partition : topic.partitions) {
      partitions.emplace_back(json::object{{"partition", partition.partition},
                                           {"leader", partition.leader},
                                           {"leader_epoch", partition.leader_epoch.value},
                                           {"replicas", json::value_from(partition.replicas)},
                                           {"in_sync", json::value_from(partition.in_sync)}});
    }
    print_json(json::object{{"topic", topic.topic.name},
                            {"topic_id", to_string(topic.topic.id)},
                            {"internal", topic.internal},
                            {"partitions", std::move(partitions)}});
    co_return {};
  }
  std::cout << "topic " << topic.topic.name << ", id " << to_string(topic.topic.id) << "\n\n";
  Table table({"PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN SYNC"});
  for (const auto& partition : topic.partitions) {
    table.add({std::to_string(partition.partition), std::to_string(partition.leader),
               std::to_string(partition.leader_epoch.value), join(partition.replicas),
               join(partition.in_sync)});
  }
  table.print();
  co_return {};
}

Task<> remove(Environment& environment, const Context& context, std::string name) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  // By id where there is one, so that a topic made anew under the name is not what goes.
  MR_CO_TRY(const auto topic, co_await cluster->topic(name));
  kafka::DeleteTopicsRequest request;
  request.timeout_ms = admin_timeout_ms;
  MR_CO_TRY(const auto version, cluster->any().version_of(kafka::ApiKey::delete_topics));
  if (version >= 6 && !topic.topic.id.is_none()) {
    request.topics.emplace_back().topic_id = topic.topic.id;
  } else {
    request.topic_names.push_back(name);
  }
  MR_CO_TRY(const auto answer, co_await cluster->any().call(std::move(request)));
  if (answer.responses.size() != 1) co_return Error{Errc::corrupt, "the broker answered no topic"};
  const auto& deleted = answer.responses.front();
  if (const ErrorCode code{deleted.error_code}; code != ErrorCode::none) {
    co_return error_of(code, deleted.error_message.value_or("topic '" + name + "'"));
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"topic", name}, {"deleted", true}});
  } else {
    std::cout << "deleted topic " << name << '\n';
  }
  co_return {};
}

}  // namespace

void add_topic_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("topic", "create, list, describe and delete topics");
  verb->require_subcommand(1);

  auto* create_verb = verb->add_subcommand("create", "create a topic");
  const auto wanted = std::make_shared<CreateArguments>();
  create_verb->add_option("NAME", wanted->name)->required();
  create_verb->add_option("--partitions", wanted->partitions,
                          "default: the broker's num.partitions");
  create_verb->add_option("--replication-factor", wanted->replication_factor,
                          "default: the broker's default.replication.factor");
  create_verb->add_option("--config", wanted->configs, "a setting of the topic")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  create_verb->add_flag("--if-not-exists", wanted->if_not_exists, "do not fail when it exists");
  create_verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return create(environment, context, *wanted); });
    };
  });

  verb->add_subcommand("list", "list all topics")->callback([&context, &action] {
    action = [&context] {
      return run([&](Environment& environment) { return list(environment, context); });
    };
  });

  const auto add_named = [&](const char* name, const char* help, auto task) {
    auto* named = verb->add_subcommand(name, help);
    const auto topic = std::make_shared<std::string>();
    named->add_option("NAME", *topic)->required();
    named->callback([&context, &action, topic, task] {
      action = [&context, topic, task] {
        return run([&](Environment& environment) { return task(environment, context, *topic); });
      };
    });
  };
  add_named("describe", "show a topic's partitions", &describe);
  add_named("delete", "delete a topic and its messages", &remove);
}

}  // namespace millrace::kernel::cli
