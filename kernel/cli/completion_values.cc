#include "kernel/cli/completion_values.h"

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <boost/json/value.hpp>

#include <millrace/utf8.h>

#include "kernel/broker/group_options.h"
#include "kernel/cli/admin_client.h"
#include "kernel/cli/cluster_client.h"
#include "kernel/cli/config_reference.h"
#include "kernel/cli/context.h"
#include "kernel/cli/group_client.h"
#include "kernel/cli/program.h"
#include "kernel/config/document.h"
#include "kernel/config/option_value.h"
#include "kernel/config/text.h"
#include "kernel/daemon/arguments_tree.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel::cli {

namespace {

// Whoever has pressed Tab waits for it.
constexpr auto wait_max = std::chrono::milliseconds(900);

std::string bootstrap_of(const TypedWords& typed) {
  const auto given = typed.option("--bootstrap");
  return given.empty() ? Context().bootstrap : std::string(given);
}

std::string admin_of(const TypedWords& typed) {
  const auto given = typed.option("--admin");
  return given.empty() ? "127.0.0.1:9644" : std::string(given);
}

Context context_of(const TypedWords& typed) {
  Context context;
  const auto paths = typed.options.find("--path");
  if (paths != typed.options.end()) context.plugin_folders = paths->second;
  return context;
}

// What `ask` leaves behind; nothing where it fails.
template <class Ask>
std::vector<Candidate> answer_of(Ask ask) {
  std::vector<Candidate> found;
  static_cast<void>(run([&](Environment& environment) { return ask(environment, found); }));
  return found;
}

Task<> ask_topics(Environment& environment, std::string bootstrap, std::vector<Candidate>& found) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), std::move(bootstrap)));
  MR_CO_TRY(const auto answer, co_await cluster->metadata(std::nullopt));
  for (const auto& topic : answer.topics) {
    found.push_back({topic.topic.name, concat(topic.partitions.size(), " partitions")});
  }
  co_return {};
}

Task<> ask_brokers(Environment& environment, std::string bootstrap, std::vector<Candidate>& found) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), std::move(bootstrap)));
  MR_CO_TRY(const auto answer, co_await cluster->metadata(std::vector<std::string>()));
  for (const auto& broker : answer.brokers) {
    found.push_back({std::to_string(broker.id), to_string(broker.address)});
  }
  co_return {};
}

Task<> ask_groups(Environment& environment, std::string bootstrap, std::vector<Candidate>& found) {
  MR_CO_TRY(auto client,
            co_await GroupClient::connect(environment.network(), std::move(bootstrap)));
  MR_CO_TRY(const auto groups, co_await client->list());
  for (const auto& group : groups) found.push_back({group.group, group.state});
  co_return {};
}

// The elements of `list` that the admin API answers with, by their names.
Task<> ask_names(Environment& environment, std::string admin, std::string path, std::string list,
                 std::string about, std::vector<Candidate>& found) {
  auto asking = ask_admin(environment.network(), std::move(admin), "GET", std::move(path));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  const auto* elements = answer.if_contains(list);
  if (elements == nullptr || !elements->is_array()) co_return {};
  for (const auto& element : elements->get_array()) {
    if (!element.is_object()) continue;
    found.push_back({text_of(element.get_object(), "name"), text_of(element.get_object(), about)});
  }
  co_return {};
}

std::vector<Candidate> ask_for(ValueKind kind, const TypedWords& typed) {
  return answer_of([&](Environment& environment, std::vector<Candidate>& found) {
    switch (kind) {
      case ValueKind::groups: return ask_groups(environment, bootstrap_of(typed), found);
      case ValueKind::brokers: return ask_brokers(environment, bootstrap_of(typed), found);
      case ValueKind::streams:
        return ask_names(environment, admin_of(typed), "/admin/streams", "streams", "state", found);
      case ValueKind::aggregates:
        return ask_names(environment, admin_of(typed), "/admin/aggregates", "aggregates", "plugin",
                         found);
      case ValueKind::stream_steps: {
        const auto stream = typed.positionals.empty() ? std::string() : typed.positionals.front();
        return ask_names(environment, admin_of(typed), "/admin/streams/" + path_segment(stream),
                         "steps", "operator", found);
      }
      default: return ask_topics(environment, bootstrap_of(typed), found);
    }
  });
}

std::vector<Candidate> live_values(ValueKind kind, const TypedWords& typed) {
  // Where a broker does not answer the thread is left behind, and ends with the process.
  const auto promise = std::make_shared<std::promise<std::vector<Candidate>>>();
  auto found = promise->get_future();
  std::thread([promise, kind, typed] {
    try {
      promise->set_value(ask_for(kind, typed));
    } catch (const std::exception&) {
      promise->set_value({});
    }
  }).detach();
  if (found.wait_for(wait_max) != std::future_status::ready) return {};
  return found.get();
}

template <class Options>
std::vector<Candidate> names_of(const Options& options) {
  std::vector<Candidate> names;
  for (const auto& option : options) names.push_back({option.option.name, option.option.help});
  return names;
}

// The settings of what the command names.
std::vector<Candidate> settings_of(const TypedWords& typed) {
  if (typed.options.contains("--topic")) return names_of(topic_options());
  if (typed.options.contains("--group")) return names_of(group_options());
  return names_of(broker_config_options());
}

std::vector<std::string> values_of(const MillraceOption& option) {
  if (option.type == MILLRACE_OPTION_BOOLEAN) return {"true", "false"};
  return choices_of(option);
}

const MillraceOption* option_of(const TypedWords& typed, std::string_view name) {
  if (typed.options.contains("--group")) {
    const auto* group = find_group_option(name);
    return group == nullptr ? nullptr : &group->option;
  }
  const bool of_broker =
      typed.options.contains("--broker") || typed.options.contains("--broker-default");
  if (of_broker) {
    const auto* broker = find_broker_option(name);
    return broker == nullptr ? nullptr : &broker->option;
  }
  const auto* topic = find_topic_option(name);
  return topic == nullptr ? nullptr : &topic->option;
}

// NAME=, and its values once that is there.
std::vector<Candidate> pairs_of(std::vector<Candidate> names, const TypedWords& typed,
                                std::string_view prefix) {
  const auto equals = prefix.find('=');
  if (equals == std::string_view::npos) {
    for (auto& name : names) name.value += '=';
    return names;
  }
  const auto* option = option_of(typed, prefix.substr(0, equals));
  if (option == nullptr) return {};
  std::vector<Candidate> pairs;
  for (const auto& value : values_of(*option)) {
    pairs.push_back({concat(prefix.substr(0, equals + 1), value), ""});
  }
  return pairs;
}

// Of [defaults] under Kafka's names, unless the table itself is to be told.
std::vector<Candidate> config_keys(const TypedWords& typed, std::string_view prefix,
                                   bool with_defaults) {
  std::vector<Candidate> keys;
  const auto add = [&keys](std::string_view table, const MillraceOption* options) {
    for (const auto* option = options; option->name != nullptr; ++option) {
      keys.push_back({concat(table, ".", quoted_key(option->name)), option->help});
    }
  };
  for (const auto& table : kernel_options()) add(table.table, table.options);
  const auto fits = [prefix](std::string_view, std::string_view table) {
    return table.starts_with(prefix.substr(0, table.size()));
  };
  for (const auto& plugin : plugin_tables(context_of(typed), fits)) {
    add(plugin.table, plugin.options);
  }
  if (with_defaults) {
    add("defaults", broker_defaults());
  } else {
    std::ranges::move(names_of(topic_options()), std::back_inserter(keys));
    std::ranges::move(names_of(broker_config_options()), std::back_inserter(keys));
  }
  return keys;
}

// A setting may be a topic's and the broker's.
void keep_one_of_each(std::vector<Candidate>& candidates) {
  std::ranges::sort(candidates, {}, &Candidate::value);
  const auto again = std::ranges::unique(candidates, {}, &Candidate::value);
  candidates.erase(again.begin(), again.end());
}

std::vector<Candidate> plugins_of(const TypedWords& typed, std::string_view prefix) {
  std::vector<Candidate> plugins;
  const auto fits = [prefix](std::string_view plugin, std::string_view) {
    return plugin.starts_with(prefix);
  };
  for (const auto& plugin : plugin_tables(context_of(typed), fits)) {
    plugins.push_back({plugin.plugin, plugin.summary});
  }
  return plugins;
}

Completions completions_of(const std::vector<std::string>& words) {
  Completions completions;
  if (!words.empty() && words.front() == "millraced") {
    Arguments arguments;
    completions = complete(*make_daemon(arguments, MILLRACE_VERSION), std::span(words).subspan(1),
                           known_values);
  } else {
    Context context;
    Action action;
    const auto own = std::span(words).subspan(words.empty() ? 0 : 1);
    completions = complete(*make_program(context, action), own, known_values);
  }
  keep_one_of_each(completions.candidates);
  return completions;
}

// Of one line, and without what separates it from the word.
std::string one_line(std::string text) {
  for (auto& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return utf8_of(text);
}

void print(const Completions& completions) {
  std::cout << (completions.names == ValueKind::files     ? "files"
                : completions.names == ValueKind::folders ? "folders"
                                                          : "none")
            << '\n';
  for (const auto& [value, help] : completions.candidates) {
    if (value != one_line(value)) continue;  // it cannot be typed
    std::cout << value << '\t' << one_line(help) << '\n';
  }
  std::cout << std::flush;
}

}  // namespace

std::vector<Candidate> known_values(ValueKind kind, const TypedWords& typed,
                                    std::string_view prefix) {
  switch (kind) {
    case ValueKind::none:
    case ValueKind::files:
    case ValueKind::folders: return {};
    case ValueKind::plugins: return plugins_of(typed, prefix);
    case ValueKind::config_keys: return config_keys(typed, prefix, false);
    case ValueKind::daemon_settings: {
      auto keys = config_keys(typed, prefix, true);
      for (auto& key : keys) key.value += '=';
      return keys;
    }
    case ValueKind::settings: return settings_of(typed);
    case ValueKind::setting_values: return pairs_of(settings_of(typed), typed, prefix);
    case ValueKind::topic_settings: return pairs_of(names_of(topic_options()), typed, prefix);
    default: return live_values(kind, typed);
  }
}

void print_completions(std::span<char* const> words) {
  print(completions_of({words.begin(), words.end()}));
  std::_Exit(0);
}

}  // namespace millrace::kernel::cli
