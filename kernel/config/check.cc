// Every key of every table against what kernel and plugins declare.
#include <algorithm>

#include "kernel/config/config.h"
#include "kernel/config/document.h"
#include "kernel/config/kernel_options.h"
#include "kernel/config/option_value.h"
#include "kernel/config/stream_tables.h"
#include "kernel/config/text.h"
#include "kernel/config/topic_tables.h"

namespace millrace::kernel {

namespace {

/// An unknown key lists all that are known up to this many; beyond, the nearest alone.
constexpr std::size_t known_listed_max = 16;

class Checker {
 public:
  Checker(const ConfigTable& root, const std::vector<DeclaredPlugin>& plugins)
      : root_(root), plugins_(plugins) {}

  ConfigErrors& errors() noexcept { return errors_; }
  std::vector<SettingFact> facts();

  void check_tables();
  void check_plugin_names();
  /// The table of a kind of which any number runs: its own `options`, and a table for each.
  void check_many(const char* kind, const MillraceOption* options, const char* noun);
  OperatorSettings operators();
  BrokerSettings broker();
  ClusterSettings cluster();
  LogSettings log();
  std::map<std::string, std::string> defaults(const MillraceOption* declared);
  std::vector<Settings::Instance> instances();
  std::vector<Settings::Stream> streams(const std::vector<DeclaredStep>& steps);
  std::vector<TopicSettings> topics(const MillraceOption* declared);

 private:
  using Values = std::map<std::string, OptionValue, std::less<>>;

  void fail(const ConfigPlace& place, std::string message) {
    errors_.push_back({place, std::move(message)});
  }
  /// Keeps what an option came to; `place` is that of a default when nobody wrote a value.
  void note(std::string key, const MillraceOption& option, const OptionValue& value,
            const ConfigPlace& place);
  /// read(), for those who check a table of tables.
  ReadTable reader();
  /// The table `name` of the root; an empty one when it is absent or, which is reported, not a
  /// table.
  const ConfigTable& top(const char* name);
  void unknown(const ConfigEntry& entry, const std::string& table, const std::string& key,
               std::vector<std::string> known);
  void undeclared(const ConfigEntry& entry, const std::string& table, const std::string& key,
                  const MillraceOption* declared, const std::vector<std::string>& others);
  /// None when it is wrong, which is reported.
  std::optional<OptionValue> value(const std::string& path, const MillraceOption& option,
                                   const ConfigEntry& entry);
  /// Values and defaults of everything `declared`. Keys that are neither declared nor `others` are
  /// unknown.
  Values read(const ConfigTable& table, const std::string& name, const MillraceOption* declared,
              const std::vector<std::string>& others, const ConfigPlace& place);
  void check_plugin_name(const std::string& path, const char* kind, const std::string& name,
                         const ConfigPlace& place);
  void check_plugin_key(const std::string& table_name, const char* kind, const ConfigTable& table,
                        const MillraceOption* options);
  void check_transport(const std::string& name, const ConfigEntry& entry);
  void check_chosen(const char* kind, const OptionValue& chosen, const ConfigPlace& place);
  const ConfigTable& table_of(const PluginRequest& request);

  const ConfigTable& root_;
  const std::vector<DeclaredPlugin>& plugins_;
  ConfigTable empty_;
  ConfigErrors errors_;
  std::vector<SettingFact> facts_;
};

void Checker::note(std::string key, const MillraceOption& option, const OptionValue& value,
                   const ConfigPlace& place) {
  const bool secret = (option.flags & MILLRACE_OPTION_SECRET) != 0;
  facts_.push_back({.key = std::move(key),
                    .value = secret ? std::string() : to_text(value),
                    .source = place.source.empty() ? "default" : to_string(place),
                    .secret = secret});
}

std::vector<SettingFact> Checker::facts() {
  std::ranges::sort(facts_, {}, &SettingFact::key);
  return std::move(facts_);
}

const ConfigTable& Checker::top(const char* name) {
  const auto* table = root_.table(name);
  return table == nullptr ? empty_ : *table;
}

void Checker::unknown(const ConfigEntry& entry, const std::string& table, const std::string& key,
                      std::vector<std::string> known) {
  std::ranges::sort(known);
  auto message = concat("unknown key ", table, ".", quoted_key(key), nearest_hint(key, known));
  if (known.empty()) {
    message += concat("; [", table, "] has no options");
  } else if (known.size() <= known_listed_max) {
    message += concat("; [", table, "] has ", joined(known));
  }
  fail(entry.key, std::move(message));
}

std::optional<OptionValue> Checker::value(const std::string& path, const MillraceOption& option,
                                          const ConfigEntry& entry) {
  auto read = value_of(option, entry);
  if (read) {
    note(path, option, *read, entry.value.place);
    return *std::move(read);
  }
  fail(entry.value.place, path + ": " + read.error());
  return std::nullopt;
}

// max.connections = 3 makes tables: a name with dots must be quoted. So what is below an undeclared
// table is looked at as one name.
void Checker::undeclared(const ConfigEntry& entry, const std::string& table, const std::string& key,
                         const MillraceOption* declared, const std::vector<std::string>& others) {
  const auto* inner = std::get_if<ConfigTable>(&entry.value.value);
  if (inner != nullptr && !inner->entries().empty()) {
    for (const auto& [name, below] : inner->entries()) {
      undeclared(below, table, concat(key, ".", name), declared, others);
    }
  } else if (find_option(declared, key) != nullptr) {
    fail(entry.key, concat("a name with dots is quoted: ", table, ".\"", key, "\""));
  } else {
    auto known = names_of(declared);
    known.insert(known.end(), others.begin(), others.end());
    unknown(entry, table, key, std::move(known));
  }
}

Checker::Values Checker::read(const ConfigTable& table, const std::string& name,
                              const MillraceOption* declared,
                              const std::vector<std::string>& others, const ConfigPlace& place) {
  Values values;
  for (const auto* option = declared; option->name != nullptr; ++option) {
    if (table.find(option->name) != nullptr) continue;
    auto fallback = default_of(*option);
    if (!fallback) {
      fail(place,
           concat(name, ".", option->name, " ", fallback.error(), "; a mistake in the plugin"));
    } else if (*fallback) {
      note(name + '.' + quoted_key(option->name), *option, **fallback, {});
      values.emplace(option->name, **std::move(fallback));
    } else if ((option->flags & MILLRACE_OPTION_REQUIRED) != 0) {
      fail(place, concat("[", name, "] needs ", quoted_key(option->name), ": ", allowed(*option)));
    }
  }
  for (const auto& [key, entry] : table.entries()) {
    if (const auto* option = find_option(declared, key)) {
      auto read = value(name + '.' + quoted_key(key), *option, entry);
      if (read) values.emplace(key, *std::move(read));
    } else if (!contains(others, key)) {
      undeclared(entry, name, key, declared, others);
    }
  }
  return values;
}

void Checker::check_tables() {
  static const std::vector<std::string> known = {
      tables::broker,   tables::cluster, tables::compression, tables::coordination,
      tables::defaults, tables::log,     tables::operators,   tables::plugins,
      tables::storage,  tables::stream,  tables::topic,       tables::transport};
  for (const auto& [name, entry] : root_.entries()) {
    const bool is_table = std::holds_alternative<ConfigTable>(entry.value.value);
    if (!contains(known, name)) {
      fail(entry.key, concat("unknown ", is_table ? "table" : "key", " ", quoted_key(name),
                             nearest_hint(name, known), "; tables are ", joined(known)));
    } else if (!is_table) {
      fail(entry.key, concat(name, " is a table: write [", name, "] and its keys below"));
    }
  }
  read(top(tables::plugins), tables::plugins, plugins_options(), {}, {});
}

BrokerSettings Checker::broker() {
  const auto& table = top(tables::broker);
  const Options options(read(table, tables::broker, broker_options(), {}, {}));
  if (!errors_.empty()) return {};
  if (options.text("data").empty()) {
    fail(table.find("data")->value.place, "broker.data: expected a folder, found text \"\"");
    return {};
  }
  return {.id = static_cast<std::int32_t>(options.integer("id")),
          .data = options.text("data"),
          .rack = options.text("rack"),
          .shards = static_cast<unsigned>(options.integer("shards")),
          .memory_bytes = static_cast<std::uint64_t>(options.integer("memory"))};
}

ClusterSettings Checker::cluster() {
  const auto& table = top(tables::cluster);
  const Options options(read(table, tables::cluster, cluster_options(), {}, {}));
  const auto* entry = table.find("peer");
  if (!errors_.empty()) return {};
  ClusterSettings settings{.peer = options.text("peer")};
  if (entry == nullptr || settings.peer.empty()) return settings;
  settings.peer_place = entry->value.place;
  std::vector<std::string> transports;
  for (const auto& plugin : plugins_) {
    if (plugin.request.kind == tables::transport) transports.push_back(plugin.request.instance);
  }
  if (!contains(transports, settings.peer)) {
    fail(entry->value.place,
         concat("cluster.peer: there is no [transport.", quoted_key(settings.peer), "]",
                nearest_hint(settings.peer, transports), "; transports are ", joined(transports)));
  }
  return settings;
}

LogLevel level_of(std::string_view name) {
  for (const auto level : {LogLevel::trace, LogLevel::debug, LogLevel::info, LogLevel::warning}) {
    if (name_of(level) == name) return level;
  }
  return LogLevel::error;
}

LogSettings Checker::log() {
  const auto& table = top(tables::log);
  const Options options(read(table, tables::log, log_options(), {tables::log_levels}, {}));
  LogSettings settings;
  if (const auto* levels = table.table(tables::log_levels)) {
    for (const auto& [subsystem, entry] : levels->entries()) {
      const auto level = value("log.levels." + quoted_key(subsystem), *log_level_options(), entry);
      if (level) settings.levels.emplace(subsystem, level_of(std::get<std::string>(*level)));
    }
  } else if (const auto* entry = table.find(tables::log_levels)) {
    fail(entry->key, "log.levels is a table: write [log.levels] and SUBSYSTEM = LEVEL below");
  }
  if (!errors_.empty()) return {};
  settings.level = level_of(options.text("level"));
  settings.format = options.text("format");
  return settings;
}

std::map<std::string, std::string> Checker::defaults(const MillraceOption* declared) {
  std::map<std::string, std::string> result;
  for (const auto& [key, entry] : top(tables::defaults).entries()) {
    if (const auto* option = find_option(declared, key)) {
      const auto read = value("defaults." + quoted_key(key), *option, entry);
      if (read) result.emplace(key, to_text(*read));
    } else {
      undeclared(entry, tables::defaults, key, declared, {});
    }
  }
  for (const auto* option = declared; option->name != nullptr; ++option) {
    if (result.contains(option->name)) continue;
    const auto fallback = default_of(*option);
    if (!fallback || !*fallback) continue;
    note(concat("defaults.", quoted_key(option->name)), *option, **fallback, {});
  }
  return result;
}

const ConfigTable& Checker::table_of(const PluginRequest& request) {
  const auto& kind = top(request.kind.c_str());
  if (request.kind == tables::coordination || request.kind == tables::storage) return kind;
  const auto* table = kind.table(request.instance);
  return table == nullptr ? empty_ : *table;
}

std::vector<Settings::Instance> Checker::instances() {
  std::vector<Settings::Instance> result;
  for (const auto& plugin : plugins_) {
    const auto& request = plugin.request;
    const bool single = request.kind == tables::coordination || request.kind == tables::storage;
    const auto name = single ? request.kind : request.kind + '.' + quoted_key(request.instance);
    std::vector<std::string> others;
    if (request.kind != tables::compression && request.kind != tables::operators) {
      others.emplace_back("plugin");
    }
    Values values;
    if (plugin.options != nullptr) {
      values = read(table_of(request), name, plugin.options, others, request.place);
    }
    result.push_back({request, Options(std::move(values)), places_in(table_of(request))});
  }
  return result;
}

// A plugin's name is a file's name: letters, digits, "_" and "-".
void Checker::check_plugin_name(const std::string& path, const char* kind, const std::string& name,
                                const ConfigPlace& place) {
  if (quoted_key(name) == name) return;
  fail(place, concat(path, ": expected the NAME of ", kind, "/NAME.so in a plugin folder, found \"",
                     name, "\""));
}

void Checker::check_plugin_key(const std::string& table_name, const char* kind,
                               const ConfigTable& table, const MillraceOption* options) {
  const auto* entry = table.find("plugin");
  const auto path = table_name + ".plugin";
  const auto& option = *find_option(options, "plugin");
  if (entry == nullptr) return note(path, option, **default_of(option), {});
  const auto name = value(path, option, *entry);
  if (name) check_plugin_name(path, kind, std::get<std::string>(*name), entry->value.place);
}

void Checker::check_transport(const std::string& name, const ConfigEntry& entry) {
  const auto path = "transport." + quoted_key(name);
  const auto* table = std::get_if<ConfigTable>(&entry.value.value);
  if (table == nullptr) {
    fail(entry.key, path + " stands in the table of one transport, such as [transport.kafka]");
  } else if (table->find("plugin") != nullptr) {
    check_plugin_key(path, tables::transport, *table, transport_options());
  } else {
    check_plugin_name(path, tables::transport, name, entry.key);
  }
}

void Checker::check_plugin_names() {
  check_plugin_key(tables::coordination, tables::coordination, top(tables::coordination),
                   coordination_options());
  check_plugin_key(tables::storage, tables::storage, top(tables::storage), storage_options());
  for (const auto& [name, entry] : top(tables::transport).entries()) check_transport(name, entry);
}

void Checker::check_chosen(const char* kind, const OptionValue& chosen, const ConfigPlace& place) {
  const auto path = concat(kind, ".plugins");
  const auto& names = std::get<std::vector<std::string>>(chosen);
  for (auto name = names.begin(); name != names.end(); ++name) {
    check_plugin_name(path, kind, *name, place);
    if (std::find(names.begin(), name, *name) != name) {
      fail(place, concat(path, ": \"", *name, "\" stands twice"));
    }
  }
}

void Checker::check_many(const char* kind, const MillraceOption* options, const char* noun) {
  std::vector<std::string> loaded;
  for (const auto& plugin : plugins_) {
    if (plugin.request.kind == kind) loaded.push_back(plugin.request.instance);
  }
  for (const auto& [key, entry] : top(kind).entries()) {
    if (const auto* option = find_option(options, key)) {
      const auto read = value(concat(kind, ".", key), *option, entry);
      if (read && key == "plugins") check_chosen(kind, *read, entry.value.place);
    } else if (!std::holds_alternative<ConfigTable>(entry.value.value)) {
      unknown(entry, kind, key, names_of(options));
    } else if (!contains(loaded, key)) {
      fail(entry.key, concat("[", kind, ".", quoted_key(key), "]: no ", noun,
                             " of this name is loaded", nearest_hint(key, loaded),
                             "; loaded: ", loaded.empty() ? "none" : joined(loaded)));
    }
  }
}

OperatorSettings Checker::operators() {
  Values values;
  const auto& table = top(tables::operators);
  for (const auto* option = operators_options(); option->name != nullptr; ++option) {
    if (const auto* entry = table.find(option->name)) {
      auto written = value_of(*option, *entry);  // what is wrong has been reported
      if (written) values.emplace(option->name, *std::move(written));
    } else if (auto fallback = default_of(*option); fallback && *fallback) {
      note(concat(tables::operators, ".", option->name), *option, **fallback, {});
      values.emplace(option->name, **std::move(fallback));
    }
  }
  if (!errors_.empty()) return {};
  const Options options(std::move(values));
  return {.snapshot_events = static_cast<std::uint64_t>(options.integer("snapshot_events")),
          .snapshot_bytes = static_cast<std::uint64_t>(options.integer("snapshot_bytes"))};
}

ReadTable Checker::reader() {
  return [this](const ConfigTable& table, const std::string& name, const MillraceOption* declared,
                const std::vector<std::string>& others,
                const ConfigPlace& place) { return read(table, name, declared, others, place); };
}

std::vector<Settings::Stream> Checker::streams(const std::vector<DeclaredStep>& steps) {
  return check_streams(top(tables::stream), steps, reader(), errors_);
}

std::vector<TopicSettings> Checker::topics(const MillraceOption* declared) {
  return check_topics(top(tables::topic), declared, reader(), errors_);
}

}  // namespace

std::expected<Settings, ConfigErrors> Config::check(const std::vector<DeclaredPlugin>& plugins,
                                                    const MillraceOption* defaults,
                                                    const MillraceOption* topics,
                                                    const std::vector<DeclaredStep>& steps) const {
  Checker checker(*root_, plugins);
  checker.check_tables();
  checker.check_plugin_names();
  checker.check_many(tables::compression, compression_options(), "codec");
  checker.check_many(tables::operators, operators_options(), "operators plugin");
  Settings settings;
  settings.broker = checker.broker();
  settings.log = checker.log();
  settings.cluster = checker.cluster();
  settings.operators = checker.operators();
  settings.defaults = checker.defaults(defaults);
  settings.instances = checker.instances();
  settings.streams = checker.streams(steps);
  settings.topics = checker.topics(topics);
  settings.facts = checker.facts();
  if (checker.errors().empty()) return settings;
  sort_by_place(checker.errors());
  return std::unexpected(std::move(checker.errors()));
}

}  // namespace millrace::kernel
