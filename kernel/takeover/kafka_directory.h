// What a data directory says of the topics whose logs it holds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <millrace/environment.h>

#include "kernel/takeover/metadata_log.h"

namespace millrace::kernel {

/// Whether Kafka ran with a metadata log of its own (KRaft). Blocks on the disk.
bool has_metadata_log(FileSystem& files, const std::string& data);

/// Whether it is marked as Kafka marks one while ZooKeeper has its topics. Blocks on the disk.
Result<bool> is_of_zookeeper(FileSystem& files, const std::string& data);

/// Whether some partition's log is there. Blocks on the disk.
Result<bool> has_partition_folders(FileSystem& files, const std::string& data);

/// None where Kafka did not run with a metadata log of its own (KRaft). Blocks on the disk.
Result<std::optional<KafkaMetadata>> read_kraft_directory(FileSystem& files,
                                                          const std::string& data);

/// The topics that have folders, all led by `broker_id`. Errc::corrupt when the folders of a topic
/// name different ids or do not count from 0, or two topics have one id. Blocks on the disk.
Result<std::vector<TopicState>> topics_of_folders(FileSystem& files, const std::string& data,
                                                  std::int32_t broker_id);

}  // namespace millrace::kernel
