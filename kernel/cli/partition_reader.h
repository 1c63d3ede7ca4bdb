// What partitions of a topic hold, from their leaders, whoever they are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <millrace/batch.h>
#include <millrace/codec.h>
#include <millrace/kafka/fetch.h>

#include "kernel/cli/cluster_client.h"

namespace millrace::kernel::cli {

/// How far a partition is read.
struct ReadPosition {
  PartitionInfo partition;
  Offset next;
  Offset end{};  ///< reading ends there; none: nowhere
};

struct FetchLimits {
  std::int32_t wait_ms = 500;  ///< how long a broker waits for what is not there yet
  std::int32_t bytes_max = 8 << 20;
  std::int32_t partition_bytes_max = 8 << 20;
};

/// The offset that ListOffsets finds for a time, or for an OffsetSpec.
Task<Offset> find_offset(ClusterClient& cluster, TopicName topic, PartitionInfo& partition,
                         std::int64_t timestamp);

/// Whether to go on with the next one.
using EachFetched = std::function<bool(std::int32_t partition, const RecordView&)>;
/// Shows what an answer has brought, from each position on, and moves the positions. Checksums are
/// checked. A batch that is cut short stays for the next fetch.
Result<> open_fetched(const std::string& topic, const kafka::FetchResponse& answer,
                      const Codecs& codecs, std::vector<ReadPosition>& positions,
                      const EachFetched& each);

/// [one shard]
class PartitionReader {
 public:
  PartitionReader(ClusterClient& cluster, TopicName topic, const Codecs& codecs)
      : cluster_(cluster), topic_(std::move(topic)), codecs_(codecs) {}

  /// Asks the leader of the first position for all that it leads. Who leads no more, or does not
  /// answer, is missing in the answer: its positions know the next leader once that can be told,
  /// half a minute is waited for it, and the caller asks again. Other errors are ours.
  /// `positions` may get more while this waits.
  Task<kafka::FetchResponse> fetch(std::vector<ReadPosition>& positions, FetchLimits limits);

  /// open_fetched() of its topic.
  Result<> open(const kafka::FetchResponse& answer, std::vector<ReadPosition>& positions,
                const EachFetched& each) const {
    return open_fetched(topic_.name, answer, codecs_, positions, each);
  }

 private:
  struct Reply {
    kafka::FetchResponse answer;
    std::vector<std::int32_t> moved;  // of other leaders now
    std::optional<Error> why;
  };

  kafka::FetchRequest request_for(const std::vector<ReadPosition>& positions,
                                  FetchLimits limits) const;
  Task<Reply> ask(const std::vector<ReadPosition>& positions, FetchLimits limits);

  ClusterClient& cluster_;
  const TopicName topic_;
  const Codecs codecs_;
  std::optional<ClusterClient::Wait> wait_;  // while a leader is waited for
};

}  // namespace millrace::kernel::cli
