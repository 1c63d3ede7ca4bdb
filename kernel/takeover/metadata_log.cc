#include "kernel/takeover/metadata_log.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <millrace/batch.h>
#include <millrace/kafka/metadata_records.h>
#include <millrace/kafka/wire_reader.h>

namespace millrace::kernel {

namespace {

constexpr std::int8_t topic_resource = 2;
constexpr std::int8_t broker_resource = 4;
constexpr std::int32_t leader_unchanged = -2;

/// The state that records make, one after the other.
class Replay {
 public:
  Result<> apply(Bytes value);
  KafkaMetadata finish(Offset end) &&;

 private:
  void on(const kafka::TopicRecord& record);
  Result<> on(const kafka::PartitionRecord& record);
  Result<> on(const kafka::PartitionChangeRecord& record);
  void on(const kafka::RemoveTopicRecord& record);
  void on(const kafka::ConfigRecord& record);
  Result<PartitionState*> partition_of(const Uuid& topic, std::int32_t partition);

  std::unordered_map<Uuid, TopicState> topics_;
  std::map<std::string, Settings> topic_settings_;  // also of topics that are not there (any more)
  std::map<std::string, Settings> broker_settings_;
};

template <class Record>
Result<Record> read_record(kafka::WireReader& in, std::int16_t version) {
  if (!Record::message_versions.contains(version)) {
    return Error{Errc::unsupported, std::string(Record::message_name) + " version " +
                                        std::to_string(version) + ": known are " +
                                        std::to_string(Record::message_versions.min) + " to " +
                                        std::to_string(Record::message_versions.max)};
  }
  Record record;
  read(in, version, record);
  MR_CHECK(in.finish());
  return record;
}

// Frame version, type and version of the record in front of it, each an unsigned varint (KIP-631).
Result<> Replay::apply(Bytes value) {
  kafka::WireReader in(Buffer::copy_of(value));
  std::uint32_t frame = 0;
  std::uint32_t type = 0;
  std::uint32_t number = 0;
  in.read_uvarint(frame, "frame version");
  in.read_uvarint(type, "record type");
  in.read_uvarint(number, "record version");
  MR_CHECK(in.finish());
  const auto version = static_cast<std::int16_t>(number);
  switch (type) {
    case kafka::TopicRecord::record_type: {
      MR_TRY(const auto record, read_record<kafka::TopicRecord>(in, version));
      on(record);
      return {};
    }
    case kafka::PartitionRecord::record_type: {
      MR_TRY(const auto record, read_record<kafka::PartitionRecord>(in, version));
      return on(record);
    }
    case kafka::PartitionChangeRecord::record_type: {
      MR_TRY(const auto record, read_record<kafka::PartitionChangeRecord>(in, version));
      return on(record);
    }
    case kafka::RemoveTopicRecord::record_type: {
      MR_TRY(const auto record, read_record<kafka::RemoveTopicRecord>(in, version));
      on(record);
      return {};
    }
    case kafka::ConfigRecord::record_type: {
      MR_TRY(const auto record, read_record<kafka::ConfigRecord>(in, version));
      on(record);
      return {};
    }
    default: return {};  // brokers, quotas, features, users: not of this directory's topics
  }
}

void Replay::on(const kafka::TopicRecord& record) {
  auto& topic = topics_[record.topic_id];
  topic.name = std::string(record.name);
  topic.id = record.topic_id;
}

Result<> Replay::on(const kafka::PartitionRecord& record) {
  const auto topic = topics_.find(record.topic_id);
  if (topic == topics_.end() || record.partition_id < 0) {
    return Error{Errc::corrupt, "partition " + std::to_string(record.partition_id) +
                                    " of topic id " + to_string(record.topic_id) +
                                    ", which no record has made"};
  }
  auto& partitions = topic->second.partitions;
  const auto at = static_cast<std::size_t>(record.partition_id);
  if (at > partitions.size()) {
    return Error{Errc::corrupt, "partition " + std::to_string(at) + " of topic '" +
                                    topic->second.name + "', which has " +
                                    std::to_string(partitions.size())};
  }
  if (at == partitions.size()) partitions.emplace_back();
  partitions[at] = {.leader = record.leader,
                    .leader_epoch = Epoch{record.leader_epoch},
                    .replicas = record.replicas,
                    .in_sync = record.isr};
  return {};
}

Result<PartitionState*> Replay::partition_of(const Uuid& topic, std::int32_t partition) {
  const auto found = topics_.find(topic);
  const auto at = static_cast<std::size_t>(partition);
  if (found == topics_.end() || partition < 0 || at >= found->second.partitions.size()) {
    return Error{Errc::corrupt, "a change of partition " + std::to_string(partition) +
                                    " of topic id " + to_string(topic) +
                                    ", which no record has made"};
  }
  return &found->second.partitions[at];
}

Result<> Replay::on(const kafka::PartitionChangeRecord& record) {
  MR_TRY(auto* partition, partition_of(record.topic_id, record.partition_id));
  if (record.isr) partition->in_sync = *record.isr;
  if (record.replicas) partition->replicas = *record.replicas;
  if (record.leader != leader_unchanged) {
    partition->leader = record.leader;
    ++partition->leader_epoch.value;
  }
  return {};
}

void Replay::on(const kafka::RemoveTopicRecord& record) {
  const auto found = topics_.find(record.topic_id);
  if (found == topics_.end()) return;
  topic_settings_.erase(found->second.name);
  topics_.erase(found);
}

void Replay::on(const kafka::ConfigRecord& record) {
  if (record.resource_type != topic_resource && record.resource_type != broker_resource) return;
  auto& all = record.resource_type == topic_resource ? topic_settings_ : broker_settings_;
  auto& settings = all[std::string(record.resource_name)];
  if (record.value) {
    settings[std::string(record.name)] = std::string(*record.value);
  } else {
    settings.erase(std::string(record.name));
  }
}

KafkaMetadata Replay::finish(Offset end) && {
  KafkaMetadata metadata{.topics = {}, .brokers = std::move(broker_settings_), .end = end};
  for (auto& [id, topic] : topics_) {
    topic.configs = std::move(topic_settings_[topic.name]);
    metadata.topics.push_back(std::move(topic));
  }
  std::ranges::sort(metadata.topics, {}, &TopicState::name);
  return metadata;
}

/// A file of batches: a segment of the log, or a snapshot.
struct BatchFile {
  std::string name;
  Offset start;  ///< of a snapshot: the offset that it replaces everything below
};

std::optional<Offset> leading_offset(std::string_view name) {
  Offset offset;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), offset.value);
  if (error != std::errc{} || end != name.data() + 20) return std::nullopt;
  return offset;
}

struct Files {
  std::optional<BatchFile> snapshot;  // the newest
  std::vector<BatchFile> segments;    // in order
};

Result<Files> find_files(FileSystem& files, const std::string& folder) {
  MR_TRY(const auto listed, files.list(folder));
  Files found;
  for (const auto& file : listed) {
    const auto start = leading_offset(file.name);
    if (!start || file.is_folder) continue;
    if (file.name.ends_with(".checkpoint")) found.snapshot = BatchFile{file.name, *start};
    if (file.name.ends_with(".log")) found.segments.push_back({file.name, *start});
  }
  return found;
}

Error incomplete(const std::string& path, const std::string& what) {
  return {Errc::corrupt, path + ": " + what +
                             "; topics would be missing. Bring the folder back from a copy, or "
                             "let Kafka start and stop on it"};
}

/// Applies the records of a file that are not below `from`; returns the offset behind its last
/// batch.
Result<Offset> replay_file(FileSystem& files, const std::string& path, Offset from,
                           Replay& replay) {
  MR_TRY(const auto content, read_file(files, path));
  Offset next = from;
  std::size_t at = 0;
  const auto where = [&](const Error& error) {
    return Error{error.code, path + " at byte " + std::to_string(at) + ": " + error.detail};
  };
  while (at < content.size()) {
    const auto rest = content.slice(at);
    const auto header = read_batch_header(rest);
    if (!header && header.error().code == Errc::out_of_range) {
      return incomplete(path, "the batch at byte " + std::to_string(at) + " does not end");
    }
    if (!header) return where(header.error());
    const auto batch = rest.slice(0, header->total_bytes());
    if (!verify_crc(batch)) return where({Errc::corrupt, "the batch's checksum is wrong"});
    if (!header->control()) {
      const auto records = open_records(*header, batch, {}, batch.size());
      if (!records) return where(records.error());
      Result<> applied;
      const auto walked = for_each_record(*header, *records, [&](const RecordView& record) {
        if (record.offset < from || !record.value) return true;
        applied = replay.apply(*record.value);
        return applied.has_value();
      });
      if (!walked) return where(walked.error());
      if (!applied) return where(applied.error());
    }
    next = std::max(next, header->last_offset() + 1);
    at += header->total_bytes();
  }
  return next;
}

}  // namespace

Result<KafkaMetadata> read_metadata_log(FileSystem& files, const std::string& folder) {
  MR_TRY(const auto found, find_files(files, folder));
  Replay replay;
  if (found.segments.empty()) return incomplete(folder, "there is no segment of the log");
  Offset end{0};
  if (found.snapshot) {
    // The offsets inside a snapshot count its own records; its name says how far it reaches.
    MR_CHECK(replay_file(files, folder + "/" + found.snapshot->name, Offset{0}, replay));
    end = found.snapshot->start;
  }
  for (const auto& segment : found.segments) {
    const auto path = folder + "/" + segment.name;
    if (segment.start > end) {
      return incomplete(path, "what is before is there up to offset " + std::to_string(end.value));
    }
    MR_TRY(end, replay_file(files, path, end, replay));
  }
  return std::move(replay).finish(end);
}

}  // namespace millrace::kernel
