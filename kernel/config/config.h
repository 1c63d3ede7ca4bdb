// The configuration: one TOML file, `conf.d/*.toml` beside it, and `--set key=value`, in this
// order; what comes later wins. It is used in two steps, because what may be written depends on the
// plugins it names:
//
//   auto config = Config::load({.path = file, .sets = sets});   // read; every file's syntax
//   auto plan = make_plan(*config, ...);                        // kernel/host/plan.h: maps the
//                                                               // plugins, calls Config::check
//
// Everything is checked against declared options (millrace/options.h), and all that is wrong is
// reported at once, each with file, line and column. Used once, at start-up, before there is an
// environment: it reads files with the standard library.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/observe.h>
#include <millrace/operations.h>
#include <millrace/options.h>
#include <millrace/result.h>
#include <millrace/streams.h>

namespace millrace::kernel {

/// Where something was written: a file with line and column, or one `--set` of the command line.
struct ConfigPlace {
  std::string source;      ///< the file's path, or "--set broker.id=…"; "" for a default
  std::uint32_t line = 0;  ///< from 1; 0: the source as a whole
  std::uint32_t column = 0;
};
/// "millrace.toml:3:1"; "" for a default.
std::string to_string(const ConfigPlace& place);

/// One thing that is wrong. The message says what, what is allowed, and the nearest known name.
struct ConfigError {
  ConfigPlace place;
  std::string message;
};
using ConfigErrors = std::vector<ConfigError>;

/// "millrace.toml:3:1: unknown key broker.idd; ..."
std::string to_string(const ConfigError& error);
/// By file, line and column.
void sort_by_place(ConfigErrors& errors);
/// All of them, a line each, as one Error{invalid_argument}.
Error to_error(const ConfigErrors& errors);

/// One instance of a plugin that the configuration asks for.
struct PluginRequest {
  std::string kind;      ///< "transport"
  std::string instance;  ///< the NAME of `[transport.NAME]`; of other kinds the plugin's name
  std::string plugin;    ///< KIND/PLUGIN.so in one of the plugin folders
  ConfigPlace place;     ///< what asked for it
};

/// A request and what the plugin's descriptor declares; null when the plugin cannot be used: its
/// options are then not checked, and whoever looked for it says why.
struct DeclaredPlugin {
  PluginRequest request;
  const MillraceOption* options = nullptr;
};

/// The operator of one step of a stream.
struct StepRequest {
  std::string stream;
  std::size_t step_at = 0;
  PluginRequest plugin;
};
struct DeclaredStep {
  StepRequest request;
  const MillraceOption* options = nullptr;  ///< as of DeclaredPlugin
};

struct BrokerSettings {
  std::int32_t id = 0;
  std::string data;
  std::string rack;
  unsigned shards = 0;  ///< 0: one for two cores, up to a bound
  std::uint64_t memory_bytes = 0;
};

struct ClusterSettings {
  std::string peer;  ///< the transport by which brokers reach each other; "": the first that can
  ConfigPlace peer_place{};
};

struct OperatorSettings {
  std::uint64_t snapshot_events = 0;
  std::uint64_t snapshot_bytes = 0;
};

struct LogSettings {
  LogLevel level = LogLevel::info;
  std::string format;                                   ///< "text" or "json"
  std::map<std::string, LogLevel, std::less<>> levels;  ///< by subsystem, "storage.filelog"
};

/// Where the options of a plugin are written, by name; what nobody wrote is not there.
using OptionPlaces = std::map<std::string, ConfigPlace, std::less<>>;

/// The place of the option that `reason` begins with, as plugins say what is wrong with one: "to:
/// expected a number" or "tls = true: not there". Else `otherwise`.
ConfigPlace place_of_reason(std::string_view reason, const OptionPlaces& places,
                            const ConfigPlace& otherwise);

/// A topic that is made where it is missing: [topic.NAME].
struct TopicSettings {
  std::string name;
  std::int32_t partitions = -1;                  ///< -1: num.partitions
  std::int16_t replication_factor = -1;          ///< -1: default.replication.factor
  std::map<std::string, std::string> configs{};  ///< under Kafka's names
  ConfigPlace place{};
  OptionPlaces places{};
};

/// What a configuration says once it is checked: typed, defaults filled in.
struct Settings {
  struct Instance {
    PluginRequest request;
    Options options;
    OptionPlaces places;
  };
  struct Stream {
    struct Step {
      ConfigPlace place;  ///< of the operator's name
      Options options;    ///< defaults filled in
      OptionPlaces places;
    };
    StreamSpec spec;
    std::vector<Step> steps;  ///< as in `spec`
    ConfigPlace place;
  };
  BrokerSettings broker;
  LogSettings log;
  ClusterSettings cluster;
  OperatorSettings operators;
  std::map<std::string, std::string> defaults;  ///< what `[defaults]` sets, under Kafka's names
  std::vector<Instance> instances;              ///< in the order of the declared plugins
  std::vector<Stream> streams;                  ///< by name
  std::vector<TopicSettings> topics;            ///< by name
  std::vector<SettingFact> facts;               ///< every option with its source, by key
};

/// What is read. An empty path is the embedded default: every option at its default, the transports
/// "kafka" and "http". They also run where a file names none.
struct ConfigSource {
  std::string path;
  std::vector<std::string> sets;  ///< "broker.data=/tmp/x", in the order of the command line
};

class ConfigTable;

class Config {
 public:
  static std::expected<Config, ConfigErrors> load(const ConfigSource& source);

  /// `plugins.path`: more folders to look for plugins in.
  std::vector<std::string> plugin_folders() const;

  /// Every plugin instance that is asked for, in the order in which kinds start. `codecs`: the
  /// compression plugins there are; all are asked for unless `compression.plugins` chooses.
  /// `services`: the same of kind operators, as far as they provide services, and
  /// `operators.plugins`.
  std::vector<PluginRequest> plugins(const std::vector<std::string>& codecs,
                                     const std::vector<std::string>& services) const;
  /// Whether `operators.plugins` chooses: then nobody need look for services.
  bool chooses_operators() const;

  /// The operators that the steps of streams name.
  std::vector<StepRequest> stream_steps() const;

  /// Checks every key of every table. `defaults` is the table of what `[defaults]` may hold,
  /// `topics` that of a topic's settings. Lists end with a null name.
  std::expected<Settings, ConfigErrors> check(const std::vector<DeclaredPlugin>& plugins,
                                              const MillraceOption* defaults,
                                              const MillraceOption* topics,
                                              const std::vector<DeclaredStep>& steps = {}) const;

 private:
  explicit Config(std::shared_ptr<const ConfigTable> root) : root_(std::move(root)) {}

  std::shared_ptr<const ConfigTable> root_;
};

/// Options under the table they stand in: "broker", "storage", "transport.NAME".
struct OptionTable {
  std::string table;
  const MillraceOption* options;
};

/// What the kernel itself declares: broker, log, plugins, and `plugin` of the kinds' tables.
std::vector<OptionTable> kernel_options();

/// Name, type, unit, default, bounds, help of `key` ("broker.data") for `millrace config explain`;
/// Errc::not_found names the nearest.
Result<std::string> explain(const std::vector<OptionTable>& tables, std::string_view key);

/// Every option, a line each, for --help and the reference page.
std::string describe(const std::vector<OptionTable>& tables);

}  // namespace millrace::kernel
