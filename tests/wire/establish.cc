#include <millrace/batch.h>
#include <millrace/bytes.h>
#include <millrace/error_code.h>
#include <millrace/kafka/create_topics.h>
#include <millrace/kafka/produce.h>

#include "first_state.h"
#include "log_entries.h"
#include "shipped_codecs.h"

namespace millrace::wire {

namespace {

constexpr std::int16_t transactional_bit = 0x10;
constexpr std::int32_t timeout_ms = 20000;
constexpr std::int16_t create_topics_version = 7;  // the first whose answer has ids
// The newest version that carries records of that format.
constexpr std::int16_t produce_versions[] = {1, 2, 7};

Error refused(const std::string& what, std::int16_t code) {
  return {Errc::unsupported, what + ": error " + std::to_string(code) + " (" +
                                 std::string(name_of(static_cast<ErrorCode>(code))) + ")"};
}

Result<> create_topics(Link& link, const FirstState& state, Bindings& bindings) {
  kafka::CreateTopicsRequest request;
  request.timeout_ms = timeout_ms;
  for (const auto& [name, topic] : state.topics) {
    auto& wanted = request.topics.emplace_back();
    wanted.name = name;
    wanted.num_partitions = static_cast<std::int32_t>(topic.partitions.size());
    wanted.replication_factor = 1;
    for (const auto& [key, value] : topic.settings) {
      auto& setting = wanted.configs.emplace_back();
      setting.name = key;
      setting.value = value;
    }
  }
  if (request.topics.empty()) return {};
  MR_TRY(const auto answer, link.ask(request, create_topics_version));
  for (const auto& topic : answer.topics) {
    if (topic.error_code != 0) {
      return refused("creating topic " + std::string(topic.name), topic.error_code);
    }
    const auto& recorded = state.topics.at(std::string(topic.name)).id;
    if (!recorded.empty()) bindings.bind(IdKind::topic, recorded, to_string(topic.topic_id));
  }
  return {};
}

/// As a producer of its own sends it. A batch of a transaction is written without one.
void make_ready(MutableBytes batch) {
  auto header = read_batch_header(batch);
  if (!header) return;
  header->base_offset = {0};
  header->partition_leader_epoch = {-1};
  if (header->transactional()) {
    header->attributes &= ~transactional_bit;
    header->producer_id = -1;
    header->producer_epoch = -1;
    header->base_sequence = -1;
  }
  write_batch_header(*header, batch);
  header->crc = batch_crc(batch.first(batch_header_bytes), batch.subspan(batch_header_bytes));
  write_batch_header(*header, batch);
}

/// Writes one batch, or one V0 or V1 message; returns the offset behind it.
Result<std::int64_t> write(Link& link, const TopicPartition& partition, const Buffer& entry) {
  MutableBuffer copy(entry.size());
  copy.append(entry);
  const auto magic = std::to_integer<int>(copy.data()[batch_magic_at]);
  if (magic == 2) make_ready({copy.data(), copy.size()});
  kafka::ProduceRequest request;
  request.acks = -1;
  request.timeout_ms = timeout_ms;
  auto& topic = request.topic_data.emplace_back();
  topic.name = partition.topic;
  auto& sent = topic.partition_data.emplace_back();
  sent.index = partition.partition;
  sent.records = std::move(copy).freeze();
  MR_TRY(const auto answer, link.ask(request, produce_versions[magic]));
  const auto& done = answer.responses.at(0).partition_responses.at(0);
  if (done.error_code != 0) {
    return refused("writing the first records of " + to_string(partition), done.error_code);
  }
  MR_TRY(const auto lines, describe_entries(entry, shipped_codecs()));
  const auto& batch = lines.front().as_object();
  return done.base_offset + batch.at("lastOffset").as_int64() - batch.at("baseOffset").as_int64() +
         1;
}

/// Records for offsets of which only that they existed is known.
Result<Buffer> filler(const PartitionState& state, std::int64_t from, std::int64_t to) {
  BatchBuilder builder({});
  for (auto offset = from; offset < to; ++offset) {
    const auto known = state.timestamps.find(offset);
    builder.add({known == state.timestamps.end() ? 0 : known->second}, std::nullopt,
                as_bytes("was here before the session"));
  }
  return std::move(builder).finish();
}

Result<> write_records(Link& link, const TopicPartition& partition, const PartitionState& state) {
  std::int64_t end = 0;
  while (end < state.end) {
    const auto next = state.records.lower_bound(end);
    const auto known_from = next == state.records.end() ? state.end : next->first;
    if (known_from > end) {
      MR_TRY(const auto batch, filler(state, end, known_from));
      MR_TRY(end, write(link, partition, batch));
    } else {
      MR_TRY(end, write(link, partition, next->second));
    }
  }
  return {};
}

}  // namespace

Result<Bindings> establish(const FirstState& state, const Address& broker,
                           const ServedApis& served) {
  Bindings bindings;
  if (state.topics.empty() && state.groups.empty() && state.named_groups.empty()) return bindings;
  for (const auto api : {kafka::ApiKey::create_topics, kafka::ApiKey::produce}) {
    if (!served.contains(static_cast<std::int16_t>(api))) {
      return Error{Errc::unsupported, "the broker does not offer to create topics and to produce"};
    }
  }
  MR_TRY(const auto link, Link::connect(broker));
  MR_CHECK(create_topics(*link, state, bindings));
  for (const auto& [name, topic] : state.topics) {
    for (const auto& [index, partition] : topic.partitions) {
      MR_CHECK(write_records(*link, {name, index}, partition));
    }
  }
  if (served.contains(static_cast<std::int16_t>(kafka::ApiKey::offset_commit))) {
    MR_CHECK(establish_groups(state, *link));
  }
  return bindings;
}

}  // namespace millrace::wire
