#include "kernel/cli/partition_reader.h"

#include <algorithm>

#include <millrace/kafka/list_offsets.h>

#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t records_bytes_max = std::size_t{256} << 20;

ErrorCode code_in_list(const kafka::ListOffsetsResponse& answer) {
  if (answer.topics.empty() || answer.topics[0].partitions.empty()) return ErrorCode::none;
  return ErrorCode{answer.topics[0].partitions[0].error_code};
}

Result<> open_batches(const TopicPartition& id, const Buffer& records, const Codecs& codecs,
                      Offset& next, const EachFetched& each) {
  bool more = true;
  std::size_t at = 0;
  while (more && at < records.size()) {
    const auto rest = records.slice(at);
    const auto head = read_entry_head(rest);
    if (!head && head.error().code == Errc::out_of_range) return {};
    if (!head) return head.error();
    const auto batch = rest.slice(0, head->total_bytes);
    at += head->total_bytes;
    MR_TRY(const auto header, read_batch_header(batch));
    if (!verify_crc(batch)) {
      return Error{Errc::corrupt,
                   concat(to_string(id), ": the batch of offsets ", header.base_offset.value,
                          " to ", header.last_offset().value, " came with a wrong checksum")};
    }
    const auto from = next;
    next = header.last_offset() + 1;
    if (header.control()) continue;
    MR_TRY(const auto section, open_records(header, batch, codecs, records_bytes_max));
    MR_CHECK(for_each_record(header, section, [&](const RecordView& record) {
      if (record.offset < from) return true;
      more = each(id.partition, record);
      if (!more) next = record.offset + 1;
      return more;
    }));
  }
  return {};
}

}  // namespace

Result<> open_fetched(const std::string& topic, const kafka::FetchResponse& answer,
                      const Codecs& codecs, std::vector<ReadPosition>& positions,
                      const EachFetched& each) {
  for (const auto& one : answer.responses) {
    for (const auto& fetched : one.partitions) {
      const TopicPartition id{topic, fetched.partition_index};
      const auto position = std::ranges::find_if(positions, [&id](const ReadPosition& one) {
        return one.partition.partition == id.partition;
      });
      if (position == positions.end()) {
        return Error{Errc::corrupt, "the broker answered for another partition"};
      }
      if (const ErrorCode code{fetched.error_code}; code != ErrorCode::none) {
        return error_of(code, to_string(id) + " at offset " + std::to_string(position->next.value));
      }
      if (!fetched.records || fetched.records->empty()) continue;
      MR_TRY(const auto records, fetched.records->flatten());
      MR_CHECK(open_batches(id, records, codecs, position->next, each));
    }
  }
  return {};
}

Task<Offset> find_offset(ClusterClient& cluster, TopicName topic, PartitionInfo& partition,
                         std::int64_t timestamp) {
  kafka::ListOffsetsRequest request;
  request.replica_id = -1;
  auto& wanted = request.topics.emplace_back();
  wanted.name = topic.name;
  auto& query = wanted.partitions.emplace_back();
  query.partition_index = partition.partition;
  query.timestamp = timestamp;
  auto asking = cluster.ask_leader(topic, partition, std::move(request), code_in_list);
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (answer.topics.size() != 1 || answer.topics[0].partitions.size() != 1) {
    co_return Error{Errc::corrupt, "the broker answered for another partition"};
  }
  const auto& found = answer.topics[0].partitions[0];
  if (const ErrorCode code{found.error_code}; code != ErrorCode::none) {
    co_return error_of(code, to_string(TopicPartition{topic.name, partition.partition}));
  }
  co_return Offset{found.offset};
}

kafka::FetchRequest PartitionReader::request_for(const std::vector<ReadPosition>& positions,
                                                 FetchLimits limits) const {
  kafka::FetchRequest request;
  request.replica_id = -1;
  request.max_wait_ms = limits.wait_ms;
  request.min_bytes = 1;
  request.max_bytes = limits.bytes_max;
  auto& topic = request.topics.emplace_back();
  topic.topic = topic_.name;
  topic.topic_id = topic_.id;
  for (const auto& position : positions) {
    if (position.partition.leader != positions.front().partition.leader) continue;
    auto& wanted = topic.partitions.emplace_back();
    wanted.partition = position.partition.partition;
    wanted.fetch_offset = position.next.value;
    wanted.partition_max_bytes = limits.partition_bytes_max;
  }
  return request;
}

Task<PartitionReader::Reply> PartitionReader::ask(const std::vector<ReadPosition>& positions,
                                                  FetchLimits limits) {
  Reply reply;
  auto request = request_for(positions, limits);
  const auto leader = positions.front().partition;
  for (const auto& one : request.topics.front().partitions) reply.moved.push_back(one.partition);
  const auto asked = reply.moved.size();
  auto calling = cluster_.call_leader(leader, std::move(request));
  auto called = co_await std::move(calling);
  if (!called) {
    reply.why = called.error();
    co_return std::move(reply);
  }
  reply.answer = *std::move(called);
  reply.moved.clear();
  if (const ErrorCode code{reply.answer.error_code}; code != ErrorCode::none) {
    co_return error_of(code, "a fetch of topic " + topic_.name);
  }
  std::size_t answered = 0;
  for (const auto& topic : reply.answer.responses) answered += topic.partitions.size();
  if (answered != asked) {
    co_return Error{Errc::corrupt,
                    concat("the broker was asked for ", asked, " partitions of topic ", topic_.name,
                           " and answered for ", answered)};
  }
  for (auto& topic : reply.answer.responses) {
    std::erase_if(topic.partitions, [&](const kafka::FetchResponse::Partition& fetched) {
      const ErrorCode code{fetched.error_code};
      if (!ClusterClient::moves(code)) return false;
      reply.moved.push_back(fetched.partition_index);
      reply.why = ClusterClient::passing(code, "broker " + std::to_string(leader.leader));
      return true;
    });
  }
  co_return std::move(reply);
}

Task<kafka::FetchResponse> PartitionReader::fetch(std::vector<ReadPosition>& positions,
                                                  FetchLimits limits) {
  MR_CO_TRY(auto reply, co_await ask(positions, limits));
  if (!reply.why) {
    wait_.reset();
    co_return std::move(reply.answer);
  }
  if (!wait_) {
    const TopicPartition id{topic_.name, reply.moved.front()};
    wait_.emplace("a leader of " + to_string(id));
  }
  MR_CO_CHECK(co_await cluster_.next_try(*wait_, *std::move(reply.why)));
  MR_CO_TRY(const auto told, co_await cluster_.partitions(topic_));
  for (auto& position : positions) {
    const auto number = position.partition.partition;
    if (!contains(reply.moved, number)) continue;
    const auto found = std::ranges::find(told, number, &PartitionInfo::partition);
    if (found != told.end()) position.partition = *found;
  }
  co_return std::move(reply.answer);
}

}  // namespace millrace::kernel::cli
