// What administers a broker: topics made, changed and removed. In terms of the log, as broker.h: no
// version numbers, no wire format. Calls are made on the connection's shard, and answered there;
// changes are made on the control thread, one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/broker.h>
#include <millrace/configs.h>

namespace millrace {

// ---- topics ----

struct NewTopic {
  std::string name;
  std::int32_t partitions = -1;          ///< -1: num.partitions
  std::int16_t replication_factor = -1;  ///< -1: default.replication.factor
  std::map<std::int32_t, std::vector<std::int32_t>> assignments;
  std::vector<std::pair<std::string, std::optional<std::string>>> configs;
};
struct CreateTopicsRequest {
  std::vector<NewTopic> topics;
  Duration timeout{};
  bool validate_only = false;
};
struct TopicCreated {
  std::string name;
  Uuid id;
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::int32_t partitions = -1;
  std::int16_t replication_factor = -1;
  std::vector<ConfigEntry> configs;  ///< as Configs::describe() tells them
};
struct TopicDeleted {
  TopicName topic;
  ErrorCode error = ErrorCode::none;
  std::string message;
};

/// Broker::admin(). Implemented by the kernel; errors of single topics and partitions are codes in
/// the answer, a failed Task means that the broker is stopping.  [connection's shard]
class Admin {
 public:
  virtual ~Admin() = default;

  virtual Task<std::vector<TopicCreated>> create_topics(Session& session,
                                                        CreateTopicsRequest request) = 0;
  virtual Task<std::vector<TopicDeleted>> delete_topics(Session& session,
                                                        std::vector<TopicName> topics,
                                                        Duration timeout) = 0;
};

}  // namespace millrace
