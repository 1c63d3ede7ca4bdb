// Kafka's own metadata log (KRaft): what it says of topics, their settings and those of brokers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/types.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

using Settings = std::map<std::string, std::string>;

/// What Kafka knew when it stopped.
struct KafkaMetadata {
  std::vector<TopicState> topics;
  std::map<std::string, Settings>
      brokers;  ///< dynamic settings by broker id; "" is for all brokers
  Offset end;   ///< behind the last record read
};

/// Reads the newest snapshot in `folder` (`__cluster_metadata-0`) and every record behind it.
/// Errc::corrupt names file and position of what cannot be read or is not there: a log that Kafka
/// has closed is whole. Blocks on the disk.
Result<KafkaMetadata> read_metadata_log(FileSystem& files, const std::string& folder);

}  // namespace millrace::kernel
