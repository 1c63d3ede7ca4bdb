// Batches for the partitions of a topic, each stored once, also where it has to be sent again.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <millrace/batch.h>
#include <millrace/codec.h>

#include "kernel/cli/cluster_client.h"

namespace millrace::kernel::cli {

/// Of the words of --acks and --compression, which were checked when they were parsed.
std::int16_t acks_of(std::string_view word);
CompressionId compression_of(std::string_view word);

/// By which a leader knows a batch that it has stored before. Not set: brokers before 0.11 have
/// none, or we are not allowed one.
struct ProducerId {
  std::int64_t id = -1;
  std::int16_t epoch = -1;
};
Task<ProducerId> ask_producer_id(ClusterClient& cluster);

/// The number of the batch behind one of `records`: they go round before they would be negative.
std::int32_t sequence_after(std::int32_t sequence, std::int32_t records);

struct SendSettings {
  std::int16_t acks = -1;
  CompressionId compression = CompressionId::none;
};

/// Sends one batch at a time to a partition. Several of them may share `cluster` and `topic`, which
/// both live longer.  [one shard]
class BatchSender {
 public:
  BatchSender(ClusterClient& cluster, TopicInfo& topic, ProducerId self, SendSettings settings);

  /// For the next batch of a partition.
  BatchBuilder builder(std::size_t partition) const;
  /// The batch that `builder` holds, of builder(partition); the next one follows it.
  Result<Buffer> seal(std::size_t partition, BatchBuilder& builder, const Codecs& codecs);
  /// Until the batch is acknowledged. While its leader changes, or too few replicas are in sync, it
  /// is sent again, up to half a minute long; without a producer id only if it was not stored.
  Task<> send(std::size_t partition, Buffer batch);

 private:
  ClusterClient& cluster_;
  TopicInfo& topic_;
  const ProducerId self_;
  const SendSettings settings_;
  std::vector<std::int32_t> sequences_;  // of the next batch of each partition
};

}  // namespace millrace::kernel::cli
