#include "kernel/streams/stream_outputs.h"

#include <limits>

#include <millrace/kafka/partitioner.h>

namespace millrace::kernel {

namespace {

// Well below what a topic takes by default (max.message.bytes).
constexpr std::size_t batch_bytes_target = 512UL << 10;

}  // namespace

struct StreamOutputs::Partition {
  TopicPartition id;
  std::vector<StreamBatch> full;
  StreamBatch filling;
  std::int32_t next_sequence = 0;
  bool listed = false;  // in filled_

  // As it was before the record that is being processed.
  bool touched = false;
  std::size_t full_before = 0;
  StreamBatch::Mark before;
};

class StreamOutputs::Topic {
 public:
  std::vector<std::unique_ptr<Partition>> partitions;
};

StreamOutputs::StreamOutputs(StreamMemory& memory) : memory_(memory) {}

StreamOutputs::~StreamOutputs() { memory_.give_back(bytes_ + taken_bytes_); }

void StreamOutputs::set_producer(std::int64_t id, std::int16_t epoch) {
  producer_id_ = id;
  producer_epoch_ = epoch;
}

void StreamOutputs::set_partitions(const std::string& topic, std::int32_t partitions) {
  auto& known = topics_[topic];
  if (!known) known = std::make_unique<Topic>();
  // A topic that is gone, or has come again with fewer, keeps what is being written to it.
  while (known->partitions.size() < static_cast<std::size_t>(partitions)) {
    auto partition = std::make_unique<Partition>();
    partition->id = {topic, static_cast<std::int32_t>(known->partitions.size())};
    known->partitions.push_back(std::move(partition));
  }
}

StreamOutputs::Topic* StreamOutputs::find(std::string_view topic) {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? nullptr : found->second.get();
}

bool StreamOutputs::exists(const Topic& topic) noexcept { return !topic.partitions.empty(); }

std::vector<std::string> StreamOutputs::topics() const {
  std::vector<std::string> names;
  for (const auto& [name, topic] : topics_) names.push_back(name);
  return names;
}

void StreamOutputs::forget_missing() {
  std::erase_if(topics_, [](const auto& known) { return !exists(*known.second); });
}

void StreamOutputs::account(std::size_t before, std::size_t now) {
  if (now == before) return;
  const auto grown = static_cast<std::int64_t>(now) - static_cast<std::int64_t>(before);
  bytes_ += grown;
  if (memory_.take(grown)) return;
  refused_ = true;
  memory_.give_back(-grown);  // it is there already; undo() and the end give it back
  throw StreamMemoryExceeded("state and pending output of the stream exceed its memory of " +
                             std::to_string(memory_.bytes_max()) + " bytes");
}

void StreamOutputs::add(Topic& topic, std::int32_t source_partition, const OutputRecord& record) {
  const auto count = static_cast<std::int32_t>(topic.partitions.size());
  const auto number =
      record.key ? kafka::partition_of(*record.key, count) : source_partition % count;
  auto& partition = *topic.partitions[static_cast<std::size_t>(number)];
  if (!partition.touched) {
    partition.touched = true;
    partition.full_before = partition.full.size();
    partition.before = partition.filling.mark();
    touched_.push_back(&partition);
  }
  if (!partition.listed) {
    partition.listed = true;
    filled_.push_back(&partition);
  }
  const auto more = content_bytes(record.key, record.value, record.headers);
  if (partition.filling.records() > 0 && partition.filling.bytes() + more > batch_bytes_target) {
    partition.full.push_back(std::exchange(partition.filling, {}));
  }
  const auto before = partition.filling.capacity();
  partition.filling.add(record.timestamp, record.key, record.value, record.headers);
  account(before, partition.filling.capacity());
}

void StreamOutputs::keep() noexcept {
  for (auto* partition : touched_) partition->touched = false;
  touched_.clear();
}

void StreamOutputs::undo() {
  for (auto* partition : touched_) {
    auto& full = partition->full;
    std::size_t freed = 0;
    if (full.size() > partition->full_before) {
      freed += partition->filling.capacity();
      partition->filling = std::move(full[partition->full_before]);
      for (auto at = partition->full_before + 1; at < full.size(); ++at) {
        freed += full[at].capacity();
      }
      full.resize(partition->full_before);
    }
    partition->filling.rewind(partition->before);
    partition->touched = false;
    bytes_ -= static_cast<std::int64_t>(freed);
    memory_.give_back(static_cast<std::int64_t>(freed));
  }
  touched_.clear();
}

std::vector<StreamOutput> StreamOutputs::take() {
  std::vector<StreamOutput> outputs;
  for (auto* partition : filled_) {
    partition->listed = false;
    if (partition->filling.records() > 0) {
      partition->full.push_back(std::exchange(partition->filling, {}));
    }
    if (partition->full.empty()) continue;
    auto& output = outputs.emplace_back(StreamOutput{partition->id, {}});
    for (auto& batch : partition->full) {
      const auto records = batch.records();
      output.batches.push_back(
          batch.finish({producer_id_, producer_epoch_, partition->next_sequence}));
      // Sequences run from 0 to 2^31-1 and begin again.
      constexpr std::int64_t sequences = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
      partition->next_sequence =
          static_cast<std::int32_t>((std::int64_t{partition->next_sequence} + records) % sequences);
    }
    partition->full.clear();
  }
  filled_.clear();
  taken_bytes_ += std::exchange(bytes_, 0);
  return outputs;
}

void StreamOutputs::written() noexcept { memory_.give_back(std::exchange(taken_bytes_, 0)); }

}  // namespace millrace::kernel
