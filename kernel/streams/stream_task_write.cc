// What a turn leaves behind: outputs, then the changelog.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "kernel/config/text.h"
#include "kernel/streams/stream_task.h"
#include "kernel/streams/stream_topology.h"

namespace millrace::kernel {

namespace {

constexpr Duration write_timeout = std::chrono::seconds(30);
constexpr Duration write_again_after = std::chrono::milliseconds(200);
// Partitions of the topics that are written to are counted again after so long.
constexpr Duration learn_again_after = std::chrono::seconds(10);

/// What may go away while the same batch is sent again.
bool is_passing(ErrorCode error) {
  switch (error) {
    case ErrorCode::not_leader_or_follower:
    case ErrorCode::leader_not_available:
    case ErrorCode::unknown_topic_or_partition:
    case ErrorCode::unknown_topic_id:
    case ErrorCode::request_timed_out:
    case ErrorCode::kafka_storage_error:
    case ErrorCode::not_enough_replicas:
    case ErrorCode::not_enough_replicas_after_append: return true;
    default: return false;
  }
}

/// The topic has forgotten our producer: a new one has to begin.
bool is_of_producer(ErrorCode error) {
  return error == ErrorCode::out_of_order_sequence_number ||
         error == ErrorCode::unknown_producer_id || error == ErrorCode::invalid_producer_epoch;
}

using Batches = std::vector<std::pair<TopicPartition, Buffer>>;

ProduceRequest request_of(const Batches& batches) {
  ProduceRequest request{.acks = -1, .timeout = write_timeout, .topics = {}};
  for (const auto& [to, batch] : batches) {
    auto topic = std::ranges::find_if(
        request.topics, [&](const TopicRecords& one) { return one.topic.name == to.topic; });
    if (topic == request.topics.end()) {
      topic = request.topics.insert(topic, TopicRecords{{to.topic, {}}, {}});
    }
    topic->partitions.push_back({to.partition, batch});
  }
  return request;
}

}  // namespace

// A partition takes one batch of an idempotent producer in a request.
Task<> StreamTask::write(std::vector<StreamOutput> outputs) {
  for (std::size_t round = 0; !failure_; ++round) {
    Batches batches;
    for (const auto& output : outputs) {
      if (round < output.batches.size()) batches.emplace_back(output.to, output.batches[round]);
    }
    if (batches.empty()) break;
    MR_CO_CHECK(co_await write_all(std::move(batches)));
  }
  state_->outputs().written();
  co_return {};
}

// What was refused for the moment is sent again as it is: it is told from new records by its
// sequence.
Task<> StreamTask::write_all(Batches batches) {
  bool told = false;
  while (true) {
    auto producing = access_->produce(request_of(batches));
    MR_CO_TRY(const auto answer, co_await std::move(producing));
    Batches again;
    std::set<std::string> missing;
    std::string reason;
    for (const auto& topic : answer.topics) {
      for (const auto& partition : topic.partitions) {
        if (partition.error == ErrorCode::none) continue;
        const TopicPartition to{topic.topic.name, partition.partition};
        reason = concat("cannot write to ", to_string(to), ": ", name_of(partition.error), " ",
                        partition.message);
        if (is_of_producer(partition.error)) co_return Error{Errc::fenced, std::move(reason)};
        if (!is_passing(partition.error)) {
          failure_ = StreamFailure{{}, {}, {}, {Errc::invalid_argument, std::move(reason)}};
          co_return {};
        }
        if (partition.error == ErrorCode::unknown_topic_or_partition) missing.insert(to.topic);
        const auto batch = std::ranges::find(batches, to, &Batches::value_type::first);
        again.push_back(*batch);
      }
    }
    if (again.empty()) {
      tell_state("running");
      co_return {};
    }
    if (stopping_) co_return Error{Errc::closed, std::move(reason)};
    MR_CO_CHECK(check_led());
    if (!std::exchange(told, true)) {
      log_.warning("outputs of a stream cannot be written; they are tried until they can",
                   {{"partition", partition_}, {"reason", reason}});
    }
    tell_state("retrying", reason);
    for (const auto& topic : missing) MR_CO_CHECK(co_await make_again(topic));
    batches = std::move(again);
    MR_CO_CHECK(co_await sleep(write_again_after));
  }
}

Task<> StreamTask::commit(Buffer changelog) {
  auto appended = changelog_->append_own(changelog);
  if (!appended && appended.error().error == ErrorCode::message_too_large) {
    const auto topic = changelog_of(run_->spec.name);
    failure_ = StreamFailure{
        {},
        {},
        {},
        {Errc::too_large,
         concat(topic, " does not take the ", changelog.size(),
                " bytes that one turn has changed, because of its max.message.bytes; let it take "
                "1 GiB, as those that the broker makes: millrace config set --topic ",
                topic, " max.message.bytes=1073741824")}};
    co_return {};
  }
  if (!appended) {
    co_return Error{Errc::io,
                    concat("cannot write the changelog: ", name_of(appended.error().error), " ",
                           appended.error().message)};
  }
  MR_CO_CHECK(co_await std::move(appended->written));
  committed_ = appended->end;
  since_snapshot_ += changelog.size();
  co_return {};
}

// A topic that was deleted while the stream wrote to it, where topics are made by themselves.
Task<> StreamTask::make_again(std::string topic) {
  MetadataRequest request{.topics = std::vector<TopicName>{{std::move(topic), {}}},
                          .auto_create = true};
  auto asking = parts_.broker.metadata(access_->session(), std::move(request));
  MR_CO_CHECK(co_await std::move(asking));
  co_return {};
}

Task<> StreamTask::learn(std::string topic) {
  MetadataRequest request{.topics = std::vector<TopicName>{{topic, {}}}, .auto_create = true};
  auto asking = parts_.broker.metadata(access_->session(), std::move(request));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  const auto& known = answer.topics.at(0);
  const auto partitions =
      known.error == ErrorCode::none ? static_cast<std::int32_t>(known.partitions.size()) : 0;
  state_->outputs().set_partitions(topic, partitions);
  co_return {};
}

Task<> StreamTask::learn_again() {
  if (shard_.now() - learned_at_ < learn_again_after) co_return {};
  learned_at_ = shard_.now();
  const auto topics = state_->outputs().topics();
  for (const auto& topic : topics) MR_CO_CHECK(co_await learn(topic));
  co_return {};
}

}  // namespace millrace::kernel
