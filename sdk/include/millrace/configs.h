// Settings of topics and brokers while they run: described with where each value comes from, and
// changed. Names, units and defaults are Kafka's; no version numbers, no wire format. Calls are
// made on the connection's shard, and answered there; changes are made on the control thread, one
// at a time, and are in effect when they are answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/error_code.h>
#include <millrace/task.h>

namespace millrace {

class Session;

/// What has settings; as Kafka numbers them.
enum class ConfigResourceType : std::int8_t {
  topic = 2,
  broker = 4,
  broker_logger = 8,  ///< log levels of a broker, by subsystem
  client_metrics = 16,
  group = 32,
};

/// A topic by its name; a broker by its id, or all brokers by "".
struct ConfigResource {
  ConfigResourceType type{};
  std::string name;
  friend auto operator<=>(const ConfigResource&, const ConfigResource&) = default;
};

/// Where a value comes from (KIP-226), strongest first, as Kafka numbers them.
enum class ConfigSource : std::int8_t {
  topic = 1,
  broker = 2,         ///< set for one broker while it runs
  all_brokers = 3,    ///< set for all brokers while they run
  static_broker = 4,  ///< from the configuration file
  fallback = 5,       ///< nobody set it
  broker_logger = 6,  ///< a log level
};

enum class ConfigType : std::int8_t {
  unknown = 0,
  boolean = 1,
  text = 2,
  int32 = 3,
  int16 = 4,
  int64 = 5,
  number = 6,
  list = 7,
  class_name = 8,
  password = 9,
};

struct ConfigSynonym {
  std::string name;
  std::optional<std::string> value;
  ConfigSource source = ConfigSource::fallback;
};

struct ConfigEntry {
  std::string name;
  std::optional<std::string> value;  ///< none: it has no value, or a secret one
  ConfigSource source = ConfigSource::fallback;
  ConfigType type = ConfigType::unknown;
  bool read_only = false;
  bool sensitive = false;
  std::vector<ConfigSynonym> synonyms;  ///< every value that could count, the one that does first
  std::string documentation;
};

// ---- describe ----

struct ConfigQuery {
  ConfigResource resource;
  std::vector<std::string> names;  ///< empty: all
};
struct ConfigsDescribed {
  ConfigResource resource;
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::vector<ConfigEntry> entries;  ///< by name
};

// ---- alter ----

enum class ConfigOperation : std::int8_t {
  set = 0,
  remove = 1,    ///< what it would be without comes back
  append = 2,    ///< to a list, what is not in it
  subtract = 3,  ///< from a list
};
struct ConfigChange {
  std::string name;
  ConfigOperation operation = ConfigOperation::set;
  std::optional<std::string> value;
};
struct ConfigAlteration {
  ConfigResource resource;
  std::vector<ConfigChange> changes;
  bool replace_all = false;  ///< what is set and not named in `changes` is removed
};
struct AlterConfigsRequest {
  std::vector<ConfigAlteration> alterations;
  bool validate_only = false;
};
struct ConfigsAltered {
  ConfigResource resource;
  ErrorCode error = ErrorCode::none;
  std::string message;
};

/// Broker::configs(). Implemented by the kernel; errors of single resources are in the answer, a
/// failed Task means that the broker is stopping.  [connection's shard]
class Configs {
 public:
  virtual ~Configs() = default;

  /// In the order of the queries.
  virtual Task<std::vector<ConfigsDescribed>> describe(Session& session,
                                                       std::vector<ConfigQuery> queries) = 0;
  /// In the order of the request. Each resource is changed as a whole or not at all.
  virtual Task<std::vector<ConfigsAltered>> alter(Session& session,
                                                  AlterConfigsRequest request) = 0;
  /// What there is to describe, of these types; of all types when none is given.
  virtual Task<std::vector<ConfigResource>> list(Session& session,
                                                 std::vector<ConfigResourceType> types) = 0;
};

}  // namespace millrace
