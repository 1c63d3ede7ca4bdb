// What a broker is made of and how it is set up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <millrace/codec.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/storage.h>

namespace millrace::kernel {

class ClusterState;

struct BrokerConfig {
  std::int32_t id = 0;
  std::string rack;
  std::string data;                             ///< the data directory, as operators are told
  std::size_t memory_bytes = 0;                 ///< for requests in flight, all shards together
  std::map<std::string, std::string> defaults;  ///< `[defaults]`, by Kafka's names

  /// What `[defaults]` says, as checked at the start.
  std::string default_of(const std::string& name, std::string_view fallback) const;
  std::int64_t number_of(const std::string& name, std::int64_t fallback) const;
  /// The same of a configuration that may have been read again since. Null: it has not.
  std::string default_of(const ClusterState* now, const std::string& name,
                         std::string_view fallback) const;
  std::int64_t number_of(const ClusterState* now, const std::string& name,
                         std::int64_t fallback) const;
  const std::map<std::string, std::string>& defaults_of(const ClusterState* now) const noexcept;
};

/// Outlives the broker.
struct BrokerParts {
  Environment& environment;
  Storage& storage;
  Coordination& coordination;
  Codecs codecs;  ///< at the start; shards have those of now
  Log log;
  Metrics& metrics;
};

}  // namespace millrace::kernel
