#include "kernel/cli/batch_sender.h"

#include <millrace/kafka/init_producer_id.h>
#include <millrace/kafka/produce.h>

#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::int32_t produce_timeout_ms = 30'000;

// What a broker takes in one request unless it is set up otherwise, less what stands around a
// batch.
constexpr std::size_t batch_bytes_usual = (std::size_t{100} << 20) - 1024;

// It ends the connection of somebody who sends more, and would do so again.
Error too_large(const TopicPartition& id, std::size_t bytes, const Error& why) {
  return {Errc::invalid_argument,
          concat(to_string(id), ": ", bytes, " bytes in one batch were not answered: ", why.detail,
                 "; brokers take requests of up to 104857600 bytes unless their "
                 "socket.request.max.bytes says more")};
}

ErrorCode code_of_produce(const kafka::ProduceResponse& answer) {
  if (answer.responses.empty() || answer.responses[0].partition_responses.empty()) {
    return ErrorCode::none;
  }
  return ErrorCode{answer.responses[0].partition_responses[0].error_code};
}

}  // namespace

std::int16_t acks_of(std::string_view word) { return word == "1" ? 1 : -1; }

CompressionId compression_of(std::string_view word) {
  for (const auto id :
       {CompressionId::gzip, CompressionId::snappy, CompressionId::lz4, CompressionId::zstd}) {
    if (name_of(id) == word) return id;
  }
  return CompressionId::none;
}

Task<ProducerId> ask_producer_id(ClusterClient& cluster) {
  if (!cluster.any().version_of(kafka::ApiKey::init_producer_id)) co_return ProducerId{};
  kafka::InitProducerIdRequest request;
  request.transactional_id.reset();
  request.transaction_timeout_ms = -1;
  // A broker that has just started has none to give for a moment.
  const auto code_of = [](const auto& answer) { return ErrorCode{answer.error_code}; };
  MR_CO_TRY(const auto answer, co_await cluster.ask_any(std::move(request), code_of));
  const ErrorCode code{answer.error_code};
  if (code == ErrorCode::cluster_authorization_failed) co_return ProducerId{};  // may do without
  if (code != ErrorCode::none) co_return error_of(code, "no producer id is given out");
  co_return ProducerId{answer.producer_id, answer.producer_epoch};
}

std::int32_t sequence_after(std::int32_t sequence, std::int32_t records) {
  constexpr std::uint32_t sequence_max = 0x7fffffff;
  const auto sum = static_cast<std::uint32_t>(sequence) + static_cast<std::uint32_t>(records);
  return static_cast<std::int32_t>(sum & sequence_max);
}

BatchSender::BatchSender(ClusterClient& cluster, TopicInfo& topic, ProducerId self,
                         SendSettings settings)
    : cluster_(cluster),
      topic_(topic),
      self_(self),
      settings_(settings),
      sequences_(topic.partitions.size()) {}

BatchBuilder BatchSender::builder(std::size_t partition) const {
  const bool known = self_.id >= 0;
  return BatchBuilder({.compression = settings_.compression,
                       .producer_id = self_.id,
                       .producer_epoch = self_.epoch,
                       .base_sequence = known ? sequences_[partition] : -1});
}

Result<Buffer> BatchSender::seal(std::size_t partition, BatchBuilder& builder,
                                 const Codecs& codecs) {
  sequences_[partition] = sequence_after(sequences_[partition], builder.records());
  auto full = std::exchange(builder, this->builder(partition));
  return std::move(full).finish(codecs);
}

Task<> BatchSender::send(std::size_t partition, Buffer batch) {
  auto& info = topic_.partitions[partition];
  kafka::ProduceRequest request;
  request.acks = settings_.acks;
  request.timeout_ms = produce_timeout_ms;
  auto& topic = request.topic_data.emplace_back();
  topic.name = topic_.topic.name;
  topic.topic_id = topic_.topic.id;
  auto& data = topic.partition_data.emplace_back();
  data.index = info.partition;
  const TopicPartition id{topic_.topic.name, info.partition};
  const auto bytes = batch.size();
  const bool is_usual = bytes <= batch_bytes_usual;
  data.records = std::move(batch);
  const auto again =
      self_.id >= 0 && is_usual ? ClusterClient::Again::always : ClusterClient::Again::if_undone;
  auto asking = cluster_.ask_leader(topic_.topic, info, std::move(request), code_of_produce, again);
  const auto answered = co_await std::move(asking);
  if (!answered) {
    // Whoever is not there has not refused it.
    const bool is_refused = !is_usual && answered.error().code == Errc::closed;
    co_return is_refused ? too_large(id, bytes, answered.error()) : answered.error();
  }
  const auto& answer = *answered;
  if (answer.responses.size() != 1 || answer.responses[0].partition_responses.size() != 1) {
    co_return Error{Errc::corrupt, "the broker answered for another partition"};
  }
  const auto& produced = answer.responses[0].partition_responses[0];
  const ErrorCode code{produced.error_code};
  if (code == ErrorCode::none || code == ErrorCode::duplicate_sequence_number) co_return {};
  co_return error_of(code, to_string(id) + " " + std::string(produced.error_message.value_or("")));
}

}  // namespace millrace::kernel::cli
