#include "rewrite.h"

#include <charconv>
#include <chrono>
#include <deque>
#include <string>
#include <type_traits>

#include <millrace/batch.h>
#include <millrace/bytes.h>
#include <millrace/kafka/add_offsets_to_txn.h>
#include <millrace/kafka/add_partitions_to_txn.h>
#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/consumer_group_heartbeat.h>
#include <millrace/kafka/delete_topics.h>
#include <millrace/kafka/end_txn.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/heartbeat.h>
#include <millrace/kafka/init_producer_id.h>
#include <millrace/kafka/join_group.h>
#include <millrace/kafka/leave_group.h>
#include <millrace/kafka/metadata.h>
#include <millrace/kafka/offset_commit.h>
#include <millrace/kafka/offset_fetch.h>
#include <millrace/kafka/produce.h>
#include <millrace/kafka/share_acknowledge.h>
#include <millrace/kafka/share_fetch.h>
#include <millrace/kafka/share_group_heartbeat.h>
#include <millrace/kafka/streams_group_heartbeat.h>
#include <millrace/kafka/sync_group.h>
#include <millrace/kafka/txn_offset_commit.h>

namespace millrace::wire {

namespace {

constexpr auto ahead = std::chrono::hours(72);

/// Replaces ids wherever a request has a field of that name; `fields` and below walk into what
/// requests hold.
class Replacer {
 public:
  Replacer(const Bindings& bindings, bool too_new) : bindings_(bindings), too_new_(too_new) {}

  template <class Struct>
  void replace(Struct& in) {
    if constexpr (requires { std::string(in.group_id); }) group_ = in.group_id;
    if constexpr (requires { in.generation_id; }) epoch(in.generation_id);
    if constexpr (requires { in.generation_id_or_member_epoch; }) {
      epoch(in.generation_id_or_member_epoch);
    }
    if constexpr (requires { in.member_epoch; }) epoch(in.member_epoch);
    if constexpr (requires { in.topic_id; }) id(IdKind::topic, in.topic_id);
    if constexpr (requires { in.producer_id; }) id(IdKind::producer, in.producer_id);
    if constexpr (requires { in.session_id; }) id(IdKind::fetch_session, in.session_id);
    if constexpr (requires { in.member_id; }) id(IdKind::member, in.member_id);
    if constexpr (requires { in.cluster_id; }) id(IdKind::cluster, in.cluster_id);
    if constexpr (requires { in.v3_and_below_producer_id; }) {
      id(IdKind::producer, in.v3_and_below_producer_id);
    }
    if constexpr (requires { in.topics; }) each(in.topics);
    if constexpr (requires { in.topic_data; }) each(in.topic_data);
    if constexpr (requires { in.topic_partitions; }) each(in.topic_partitions);
    if constexpr (requires { in.forgotten_topics_data; }) each(in.forgotten_topics_data);
    if constexpr (requires { in.groups; }) each(in.groups);
    if constexpr (requires { in.members; }) each(in.members);
    if constexpr (requires { in.assignments; }) each(in.assignments);
    if constexpr (requires { in.partition_data; }) each(in.partition_data);
    if constexpr (requires { in.records; }) replace_records(in.records);
  }

 private:
  template <class T>
  void each(std::vector<T>& elements) {
    if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string_view> &&
                  !std::is_same_v<T, Uuid>) {
      for (auto& element : elements) replace(element);
    }
  }
  template <class T>
  void each(std::optional<T>& elements) {
    if (elements) each(*elements);
  }

  void epoch(std::int32_t& value) {
    value = static_cast<std::int32_t>(bindings_.live_epoch(group_, value));
  }
  void id(IdKind kind, Uuid& value) {
    if (const auto live = parse_uuid(bindings_.live(kind, to_string(value)))) value = *live;
  }
  void id(IdKind kind, std::integral auto& value) {
    const auto live = bindings_.live(kind, std::to_string(value));
    std::from_chars(live.data(), live.data() + live.size(), value);
  }
  void id(IdKind kind, std::string_view& value) {
    // A view must stay good until the request is written.
    value = kept_.emplace_back(bindings_.live(kind, std::string(value)));
  }
  template <class T>
  void id(IdKind kind, std::optional<T>& value) {
    if (value) id(kind, *value);
  }

  void replace_records(std::optional<Buffer>& records) {
    if (!records) return;
    MutableBuffer copy(records->size());
    copy.append(*records);
    for (std::size_t at = 0; at < copy.size();) {
      const auto head = read_entry_head(copy.bytes().subspan(at));
      if (!head) break;
      MutableBytes entry(copy.data() + at, head->total_bytes);
      if (head->magic == 2) replace_in_batch(entry);
      at += head->total_bytes;
    }
    records = std::move(copy).freeze();
  }

  void replace_in_batch(MutableBytes batch) {
    auto header = read_batch_header(batch);
    if (!header) return;
    const auto before = *header;
    id(IdKind::producer, header->producer_id);
    if (too_new_) {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      header->base_timestamp.ms =
          std::chrono::duration_cast<std::chrono::milliseconds>(now + ahead).count();
      header->max_timestamp = header->base_timestamp;
    }
    if (header->producer_id == before.producer_id && !too_new_) return;
    write_batch_header(*header, batch);
    header->crc = batch_crc(batch.first(batch_header_bytes), batch.subspan(batch_header_bytes));
    write_batch_header(*header, batch);
  }

  const Bindings& bindings_;
  const bool too_new_;
  std::string group_;  // whose generations and epochs these are
  std::deque<std::string> kept_;
};

template <class Request>
Result<Payload> rewrite_body(const kafka::RequestHead& head, const Bindings& bindings,
                             bool too_new) {
  MR_TRY(auto request, head.decode<Request>());
  MR_TRY(const auto unchanged, kafka::encode(request, head.version));
  if (unchanged.size() != head.body.size()) {
    return Error{Errc::invalid_argument, "a body with bytes behind it, which are part of the test"};
  }
  Replacer replacer(bindings, too_new);
  replacer.replace(request);
  return kafka::encode(request, head.version);
}

using Rewrite = Result<Payload> (*)(const kafka::RequestHead&, const Bindings&, bool);

template <class... Requests>
Rewrite find_rewrite(kafka::ApiKey key) {
  Rewrite found = nullptr;
  ((Requests::api_key == key ? void(found = rewrite_body<Requests>) : void()), ...);
  return found;
}

/// Those of the requests that name ids which a broker gave out.
Rewrite rewrite_for(kafka::ApiKey key) {
  using namespace kafka;
  return find_rewrite<AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, ApiVersionsRequest,
                      ConsumerGroupHeartbeatRequest, DeleteTopicsRequest, EndTxnRequest,
                      FetchRequest, HeartbeatRequest, InitProducerIdRequest, JoinGroupRequest,
                      LeaveGroupRequest, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest,
                      ProduceRequest, ShareAcknowledgeRequest, ShareFetchRequest,
                      ShareGroupHeartbeatRequest, StreamsGroupHeartbeatRequest, SyncGroupRequest,
                      TxnOffsetCommitRequest>(key);
}

}  // namespace

Buffer rewrite_request(const Event& request, const Bindings& bindings, bool too_new) {
  if (request.raw || !request.readable) return request.frame;
  const auto head = kafka::decode_request_head(request.frame);
  const auto rewrite = head ? rewrite_for(head->api->key) : nullptr;
  if (!rewrite) return request.frame;
  const auto body = rewrite(*head, bindings, too_new);
  const auto bytes = body ? body->flatten() : Result<Buffer>(body.error());
  if (!bytes) return request.frame;
  Payload frame(request.frame.slice(0, request.frame.size() - head->body.size()));
  frame.add(*bytes);
  return *frame.flatten();
}

}  // namespace millrace::wire
