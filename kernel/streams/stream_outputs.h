// What the operators of one task have emitted and is not written yet: by topic and partition, as
// batches of an idempotent producer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/operator.h>

#include "kernel/streams/keyed_state.h"
#include "kernel/streams/stream_batch.h"

namespace millrace::kernel {

/// Batches for one partition, to be written in this order.
struct StreamOutput {
  TopicPartition to;
  std::vector<Buffer> batches;
};

/// [one thread at a time]
class StreamOutputs {
 public:
  /// A topic and the batches of its partitions.
  class Topic;

  explicit StreamOutputs(StreamMemory& memory);
  ~StreamOutputs();
  StreamOutputs(const StreamOutputs&) = delete;
  StreamOutputs& operator=(const StreamOutputs&) = delete;

  /// Who writes from now on; sequences begin anew.
  void set_producer(std::int64_t id, std::int16_t epoch);
  /// How many partitions a topic has; 0: there is no such topic.
  void set_partitions(const std::string& topic, std::int32_t partitions);
  /// nullptr: nobody has said yet.
  Topic* find(std::string_view topic);
  static bool exists(const Topic& topic) noexcept;
  std::vector<std::string> topics() const;
  /// Topics that there were not are asked for again.
  void forget_missing();

  /// To the partition of its key, as Kafka's producers choose it; without a key to
  /// `source_partition`, or what is left of it by the number of partitions.
  void add(Topic& topic, std::int32_t source_partition, const OutputRecord& record);

  /// What was added since the last keep() or undo() stays, or goes.
  void keep() noexcept;
  void undo();

  /// As of KeyedStore.
  bool refused() const noexcept { return refused_; }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(bytes_); }
  /// Everything, sealed. It counts as memory until written() is called.
  std::vector<StreamOutput> take();
  void written() noexcept;

 private:
  struct Partition;
  void account(std::size_t before, std::size_t now);

  StreamMemory& memory_;
  std::int64_t producer_id_ = -1;
  std::int16_t producer_epoch_ = -1;
  std::map<std::string, std::unique_ptr<Topic>, std::less<>> topics_;
  std::vector<Partition*> touched_;  // since the last keep() or undo()
  std::vector<Partition*> filled_;   // that hold records
  std::int64_t bytes_ = 0;           // charged for batches that are being filled
  std::int64_t taken_bytes_ = 0;     // for those that are being written
  bool refused_ = false;
};

}  // namespace millrace::kernel
