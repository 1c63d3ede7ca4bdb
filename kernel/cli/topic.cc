// millrace topic create|list|describe|alter|trim|delete
#include <algorithm>
#include <charconv>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/kafka/create_partitions.h>
#include <millrace/kafka/create_topics.h>
#include <millrace/kafka/delete_records.h>
#include <millrace/kafka/delete_topics.h>
#include <millrace/kafka/list_offsets.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"
#include "kernel/partition/config_options.h"

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

// For those that nobody knows. A broker of another version may know more than we do.
std::string nearest_settings(const std::vector<std::string>& configs) {
  std::vector<std::string> known;
  for (const auto& one : topic_options()) known.emplace_back(one.option.name);
  std::string hint;
  for (const auto& config : configs) {
    const auto name = config.substr(0, config.find('='));
    const auto near = contains(known, name) ? std::nullopt : nearest(name, known);
    if (near) hint += concat("; nearest known to ", name, ": ", *near);
  }
  return hint;
}

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
                      "--config " + in_quotes(config) + ": expected KEY=VALUE"};
    }
    auto& added = topic.configs.emplace_back();
    added.name = config.substr(0, equals);
    added.value = config.substr(equals + 1);
  }
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  const auto code_of = [](const auto& answer) {
    return ErrorCode{answer.topics.empty() ? std::int16_t{0} : answer.topics.front().error_code};
  };
  MR_CO_TRY(const auto answer, co_await cluster->ask_controller(std::move(request), code_of));
  if (answer.topics.size() != 1) co_return Error{Errc::corrupt, "the broker answered no topic"};
  const auto& created = answer.topics.front();
  const ErrorCode code{created.error_code};
  const bool existed = code == ErrorCode::topic_already_exists && arguments.if_not_exists;
  if (code != ErrorCode::none && !existed) {
    auto what = std::string(created.error_message.value_or("topic " + in_quotes(arguments.name)));
    if (code == ErrorCode::invalid_config) what += nearest_settings(arguments.configs);
    co_return error_of(code, what);
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
    std::cout << "created topic " << arguments.name << " with "
              << counted(static_cast<std::uint64_t>(created.num_partitions), "partition") << '\n';
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
    const bool led = partition.leader >= 0;
    const bool whole = partition.in_sync.size() >= partition.replicas.size();
    table.add({std::to_string(partition.partition),
               {led ? std::to_string(partition.leader) : "none", led ? Tone::plain : Tone::bad},
               std::to_string(partition.leader_epoch.value),
               join(partition.replicas),
               {join(partition.in_sync), whole ? Tone::plain : Tone::warning}});
  }
  table.print();
  co_return {};
}

struct AlterArguments {
  std::string name;
  std::int32_t partitions = 0;
};

Task<> alter(Environment& environment, const Context& context, AlterArguments arguments) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  // A name that is not there is told with the nearest that is.
  MR_CO_CHECK(co_await cluster->topic(arguments.name));
  kafka::CreatePartitionsRequest request;
  request.timeout_ms = admin_timeout_ms;
  auto& topic = request.topics.emplace_back();
  topic.name = arguments.name;
  topic.count = arguments.partitions;
  topic.assignments.reset();
  const auto code_of = [](const auto& answer) {
    return ErrorCode{answer.results.empty() ? std::int16_t{0} : answer.results.front().error_code};
  };
  MR_CO_TRY(const auto answer, co_await cluster->ask_controller(std::move(request), code_of));
  if (answer.results.size() != 1) co_return Error{Errc::corrupt, "the broker answered no topic"};
  const auto& grown = answer.results.front();
  if (const ErrorCode code{grown.error_code}; code != ErrorCode::none) {
    co_return error_of(code, grown.error_message.value_or("topic " + in_quotes(arguments.name)));
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"topic", arguments.name}, {"partitions", arguments.partitions}});
  } else {
    std::cout << "topic " << arguments.name << " has "
              << counted(static_cast<std::uint64_t>(arguments.partitions), "partition") << '\n';
  }
  co_return {};
}

struct TrimArguments {
  std::string name;
  std::vector<std::int32_t> partitions;  // none: all
  std::string before;
};

Result<std::int64_t> parse_before(const std::string& text) {
  if (text == "end") return -1;
  std::int64_t offset = -1;
  const auto* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, offset);
  if (error == std::errc{} && stopped == end && offset >= 0) return offset;
  return Error{Errc::invalid_argument,
               "--before " + in_quotes(text) + ": expected an offset, or end"};
}

Result<std::vector<PartitionInfo>> chosen(const TopicInfo& topic,
                                          const std::vector<std::int32_t>& numbers) {
  if (numbers.empty()) return topic.partitions;
  std::vector<PartitionInfo> partitions;
  for (const auto number : numbers) {
    const auto found = std::ranges::find(topic.partitions, number, &PartitionInfo::partition);
    if (found == topic.partitions.end()) return no_such_partition("--partition", topic, number);
    partitions.push_back(*found);
  }
  return partitions;
}

// Of an answer for one partition.
template <class Answer>
ErrorCode first_code(const Answer& answer) {
  if (answer.topics.empty() || answer.topics[0].partitions.empty()) return ErrorCode::none;
  return ErrorCode{answer.topics[0].partitions[0].error_code};
}

Task<kafka::DeleteRecordsResponse> trim_partition(ClusterClient& cluster, PartitionInfo partition,
                                                  TopicName topic, std::int64_t before) {
  kafka::DeleteRecordsRequest request;
  request.timeout_ms = admin_timeout_ms;
  request.topics.emplace_back(topic.name).partitions.emplace_back(partition.partition, before);
  auto asking = cluster.ask_leader(topic, partition, std::move(request),
                                   first_code<kafka::DeleteRecordsResponse>);
  MR_CO_TRY(auto answer, co_await std::move(asking));
  if (answer.topics.size() != 1 || answer.topics[0].partitions.size() != 1) {
    co_return Error{Errc::corrupt, "the broker answered for another partition"};
  }
  if (const ErrorCode code{answer.topics[0].partitions[0].error_code}; code != ErrorCode::none) {
    co_return error_of(code, to_string(TopicPartition{topic.name, partition.partition}));
  }
  co_return std::move(answer);
}

// What it would take away is gone for good: nothing goes where not all can.
Task<> check_ends(ClusterClient& cluster, TopicName topic, std::vector<PartitionInfo> partitions,
                  std::int64_t before) {
  constexpr std::int64_t latest = -1;
  for (auto& partition : partitions) {
    kafka::ListOffsetsRequest request;
    request.replica_id = -1;
    auto& asked = request.topics.emplace_back(topic.name).partitions.emplace_back();
    asked.partition_index = partition.partition;
    asked.timestamp = latest;
    auto asking = cluster.ask_leader(topic, partition, std::move(request),
                                     first_code<kafka::ListOffsetsResponse>);
    MR_CO_TRY(const auto answer, co_await std::move(asking));
    const bool answered = answer.topics.size() == 1 && answer.topics[0].partitions.size() == 1;
    // Who does not tell refuses what is too far by himself.
    if (!answered || answer.topics[0].partitions[0].error_code != 0) continue;
    const auto end = answer.topics[0].partitions[0].offset;
    if (before <= end) continue;
    co_return Error{Errc::invalid_argument,
                    concat("--before ", before, ": ",
                           to_string(TopicPartition{topic.name, partition.partition}),
                           " ends at offset ", end, "; nothing was removed. end removes all")};
  }
  co_return {};
}

Task<> trim(Environment& environment, const Context& context, TrimArguments arguments) {
  MR_CO_TRY(const auto before, parse_before(arguments.before));
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto topic, co_await cluster->topic(arguments.name));
  MR_CO_TRY(const auto partitions, chosen(topic, arguments.partitions));
  MR_CO_CHECK(co_await check_ends(*cluster, topic.topic, partitions, before));
  json::array trimmed;
  Table table({"PARTITION", "FIRST OFFSET"});
  for (const auto& partition : partitions) {
    auto trimming = trim_partition(*cluster, partition, topic.topic, before);
    MR_CO_TRY(const auto answer, co_await std::move(trimming));
    const auto first = answer.topics[0].partitions[0].low_watermark;
    trimmed.emplace_back(json::object{{"partition", partition.partition}, {"first_offset", first}});
    table.add({std::to_string(partition.partition), std::to_string(first)});
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"topic", arguments.name}, {"partitions", std::move(trimmed)}});
  } else {
    table.print();
  }
  co_return {};
}

struct DeleteArguments {
  std::string name;
  bool force = false;
};

Task<> remove(Environment& environment, const Context& context, DeleteArguments arguments) {
  const auto& name = arguments.name;
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  // By id where there is one, so that a topic made anew under the name is not what goes.
  MR_CO_TRY(const auto topic, co_await cluster->topic(name));
  if (topic.internal && !arguments.force) {
    co_return Error{Errc::conflict, "topic " + in_quotes(name) +
                                        " is the cluster's own: what it keeps there (committed "
                                        "offsets, states) would be lost; --force deletes it"};
  }
  kafka::DeleteTopicsRequest request;
  request.timeout_ms = admin_timeout_ms;
  MR_CO_TRY(const auto version, cluster->any().version_of(kafka::ApiKey::delete_topics));
  if (version >= 6 && !topic.topic.id.is_none()) {
    request.topics.emplace_back().topic_id = topic.topic.id;
  } else {
    request.topic_names.push_back(name);
  }
  const auto code_of = [](const auto& answer) {
    return ErrorCode{answer.responses.empty() ? std::int16_t{0}
                                              : answer.responses.front().error_code};
  };
  MR_CO_TRY(const auto answer, co_await cluster->ask_controller(std::move(request), code_of));
  if (answer.responses.size() != 1) co_return Error{Errc::corrupt, "the broker answered no topic"};
  const auto& deleted = answer.responses.front();
  if (const ErrorCode code{deleted.error_code}; code != ErrorCode::none) {
    co_return error_of(code, deleted.error_message.value_or("topic " + in_quotes(name)));
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"topic", name}, {"deleted", true}});
  } else {
    std::cout << "deleted topic " << name << '\n';
  }
  co_return {};
}

void add_alter_verb(CLI::App& topic, Context& context, Action& action) {
  auto* verb = topic.add_subcommand("alter", "give a topic more partitions");
  const auto wanted = std::make_shared<AlterArguments>();
  verb->add_option("NAME", wanted->name)->required()->check(topic_name);
  verb->add_option("--partitions", wanted->partitions, "how many it shall have")
      ->required()
      ->check(whole_number<std::int32_t>(1));
  add_examples(*verb, {"millrace topic alter orders --partitions 6"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return alter(environment, context, *wanted); });
    };
  });
}

void add_delete_verb(CLI::App& topic, Context& context, Action& action) {
  auto* verb = topic.add_subcommand("delete", "delete a topic and its messages");
  const auto wanted = std::make_shared<DeleteArguments>();
  verb->add_option("NAME", wanted->name)->required()->check(not_empty);
  verb->add_flag("--force", wanted->force, "also one in which the cluster keeps what is its own");
  add_examples(*verb, {"millrace topic delete orders"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return remove(environment, context, *wanted); });
    };
  });
}

void add_trim_verb(CLI::App& topic, Context& context, Action& action) {
  auto* verb = topic.add_subcommand("trim", "remove a topic's oldest messages");
  const auto wanted = std::make_shared<TrimArguments>();
  verb->add_option("NAME", wanted->name)->required()->check(topic_name);
  verb->add_option("--before", wanted->before, "the first offset to keep, or end: all go")
      ->type_name("OFFSET|end")
      ->required();
  verb->add_option("--partition", wanted->partitions, "default: all; may be repeated")
      ->allow_extra_args(false)
      ->check(whole_number<std::int32_t>(0));
  add_examples(*verb, {"millrace topic trim orders --before end",
                       "millrace topic trim orders --partition 0 --before 1000"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return trim(environment, context, *wanted); });
    };
  });
}

}  // namespace

void add_topic_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("topic", "create, list, describe, change and delete topics");
  verb->require_subcommand(1);

  auto* create_verb = verb->add_subcommand("create", "create a topic");
  const auto wanted = std::make_shared<CreateArguments>();
  create_verb->add_option("NAME", wanted->name)->required()->check(topic_name);
  create_verb
      ->add_option("--partitions", wanted->partitions, "default: the broker's num.partitions")
      ->check(whole_number<std::int32_t>(1));
  create_verb
      ->add_option("--replication-factor", wanted->replication_factor,
                   "default: the broker's default.replication.factor")
      ->check(whole_number<std::int16_t>(1));
  create_verb->add_option("--config", wanted->configs, "a setting of the topic")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  create_verb->add_flag("--if-not-exists", wanted->if_not_exists, "do not fail when it exists");
  add_examples(*create_verb,
               {"millrace topic create orders --partitions 3 --replication-factor 3",
                "millrace topic create clicks --config retention.ms=86400000 --if-not-exists"});
  create_verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return create(environment, context, *wanted); });
    };
  });

  auto* list_verb = verb->add_subcommand("list", "list all topics");
  add_examples(*list_verb, {"millrace topic list", "millrace -o json topic list"});
  list_verb->callback([&context, &action] {
    action = [&context] {
      return run([&](Environment& environment) { return list(environment, context); });
    };
  });

  const auto add_named = [&](const char* name, const char* help, auto task) {
    auto* named = verb->add_subcommand(name, help);
    const auto topic = std::make_shared<std::string>();
    named->add_option("NAME", *topic)->required()->check(topic_name);
    add_examples(*named, {std::string("millrace topic ") + name + " orders"});
    named->callback([&context, &action, topic, task] {
      action = [&context, topic, task] {
        return run([&](Environment& environment) { return task(environment, context, *topic); });
      };
    });
  };
  add_named("describe", "show a topic's partitions", &describe);
  add_alter_verb(*verb, context, action);
  add_trim_verb(*verb, context, action);
  add_delete_verb(*verb, context, action);
}

}  // namespace millrace::kernel::cli
