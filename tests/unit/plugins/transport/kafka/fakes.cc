#include "fakes.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/bytes.h>

namespace millrace::kafka_transport::testing {

bool ManualShard::run() {
  const bool worked = !jobs_.empty();
  while (!jobs_.empty()) {
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
  }
  return worked;
}

void ManualShard::advance(Duration by) {
  const auto until = now_ + by;
  run();
  while (true) {
    const auto next =
        std::ranges::min_element(timers_, {}, [](const auto& timer) { return timer.second.first; });
    if (next == timers_.end() || next->second.first > until) break;
    now_ = std::max(now_, next->second.first);
    auto job = std::move(next->second.second);
    timers_.erase(next);
    job();
    run();
  }
  now_ = until;
}

std::vector<Buffer> Wire::answers() const {
  std::string all;
  for (const auto& send : sends) all += send;
  std::vector<Buffer> answers;
  const auto bytes = Buffer::copy_of(all);
  for (std::size_t at = 0; at + 4 <= bytes.size();) {
    const auto size = static_cast<std::size_t>(load_be<std::int32_t>(bytes.data() + at));
    answers.push_back(bytes.slice(at + 4, size));
    at += 4 + size;
  }
  return answers;
}

Task<std::size_t> WireStream::receive(MutableBytes space) {
  ++wire_.receives;
  wire_.space_bytes = space.size();
  while (wire_.inbox.empty() && !wire_.peer_closed && !wire_.closed) {
    auto waiting = wire_.changed.wait();
    MR_CO_CHECK(co_await std::move(waiting));
  }
  if (wire_.closed) co_return Error{Errc::closed, "closed"};
  const auto bytes = std::min({space.size(), wire_.inbox.size(), wire_.receive_bytes_max});
  std::ranges::copy(as_bytes(wire_.inbox).first(bytes), space.begin());
  wire_.inbox.erase(0, bytes);
  co_return bytes;
}

Task<> WireStream::send(Payload payload) {
  if (wire_.closed) co_return Error{Errc::closed, "closed"};
  wire_.sends.push_back(bytes_of(payload));
  while (wire_.reads_slowly && !wire_.closed) {
    auto waiting = wire_.changed.wait();
    MR_CO_CHECK(co_await std::move(waiting));
  }
  if (wire_.closed) co_return Error{Errc::closed, "closed"};
  co_return {};
}

void KeptLog::write(LogLevel level, std::string_view, std::string_view message,
                    std::initializer_list<LogField> fields) noexcept {
  std::string text(message);
  for (const auto& field : fields) text += " " + std::string(field.name) + "=" + field.value;
  lines.push_back({level, std::move(text)});
}

std::vector<std::string> KeptLog::warnings() const {
  std::vector<std::string> texts;
  for (const auto& line : lines) {
    if (line.level >= LogLevel::warning) texts.push_back(line.text);
  }
  return texts;
}

namespace {

template <class Answer, class Held, class Request>
Call<Answer> call(std::deque<Held>& calls, Request request, bool held,
                  const std::function<Answer(const Request&)>& answer) {
  auto [dispatched, is_dispatched] = make_pending<>();
  auto [done, is_done] = make_pending<Answer>();
  if (!held) {
    dispatched.resolve();
    done.resolve(answer ? answer(request) : plain_answer(request));
  }
  calls.push_back({std::move(request), std::move(dispatched), std::move(done)});
  return {std::move(is_dispatched), std::move(is_done)};
}

}  // namespace

// Held, it keeps the records' memory as long as the test does.
Call<ProduceAnswer> FakeBroker::produce(Session&, ProduceRequest request) {
  if (!hold_produce) request.memory.shrink_to(0);
  return call(produces, std::move(request), hold_produce, on_produce);
}

Call<FetchAnswer> FakeBroker::fetch(Session&, FetchRequest request) {
  return call(fetches, std::move(request), hold_fetch, on_fetch);
}

Task<ListOffsetsAnswer> FakeBroker::list_offsets(Session&, ListOffsetsRequest request) {
  list_offsets_asked.push_back(request);
  co_return on_list_offsets ? on_list_offsets(request) : plain_answer(request);
}

Task<MetadataAnswer> FakeBroker::metadata(Session&, MetadataRequest request) {
  metadata_asked.push_back(std::move(request));
  if (on_metadata) on_metadata();
  co_return metadata_answer;
}

Task<std::vector<TopicCreated>> FakeAdmin::create_topics(Session&, CreateTopicsRequest request) {
  create_topics_asked.push_back(request);
  std::vector<TopicCreated> created;
  for (const auto& topic : request.topics) {
    created.push_back(
        {.name = topic.name, .partitions = topic.partitions, .replication_factor = 1});
  }
  co_return created;
}

Task<std::vector<TopicDeleted>> FakeAdmin::delete_topics(Session&, std::vector<TopicName> topics,
                                                         Duration) {
  delete_topics_asked.push_back(topics);
  std::vector<TopicDeleted> deleted;
  for (auto& topic : topics) deleted.push_back({.topic = std::move(topic)});
  co_return deleted;
}

Task<std::vector<ConfigsDescribed>> FakeConfigs::describe(Session&,
                                                          std::vector<ConfigQuery> queries) {
  describe_asked.push_back(std::move(queries));
  co_return described;
}

Task<std::vector<ConfigsAltered>> FakeConfigs::alter(Session&, AlterConfigsRequest request) {
  std::vector<ConfigsAltered> altered;
  for (const auto& one : request.alterations) altered.push_back({.resource = one.resource});
  alter_asked.push_back(std::move(request));
  co_return altered;
}

Task<std::vector<ConfigResource>> FakeConfigs::list(Session&,
                                                    std::vector<ConfigResourceType> types) {
  list_asked.push_back(std::move(types));
  co_return listed;
}

Task<std::vector<TopicGrown>> FakeAdmin::grow_topics(Session&, GrowTopicsRequest request) {
  grow_topics_asked.push_back(request);
  std::vector<TopicGrown> grown;
  for (auto& topic : request.topics) grown.push_back({.name = std::move(topic.name)});
  co_return grown;
}

Task<std::vector<TopicTrimmed>> FakeAdmin::trim(Session&, TrimRequest request) {
  trim_asked.push_back(request);
  std::vector<TopicTrimmed> trimmed;
  for (const auto& topic : request.topics) {
    auto& to = trimmed.emplace_back(topic.topic);
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back({.partition = partition.partition, .log_start = partition.before});
    }
  }
  co_return trimmed;
}

Task<TopicPage> FakeAdmin::describe_topics(Session&, TopicPageRequest request) {
  describe_topics_asked.push_back(std::move(request));
  co_return topic_page;
}

Task<std::vector<LogFolder>> FakeAdmin::describe_log_folders(
    Session&, std::optional<std::vector<TopicPartitions>> topics) {
  describe_log_folders_asked.push_back(std::move(topics));
  co_return log_folders;
}

Task<std::vector<TopicProducers>> FakeAdmin::describe_producers(
    Session&, std::vector<TopicPartitions> topics) {
  describe_producers_asked.push_back(topics);
  std::vector<TopicProducers> described;
  for (const auto& topic : topics) {
    auto& to = described.emplace_back(topic.topic);
    for (const auto number : topic.partitions) {
      to.partitions.push_back({.partition = number, .producers = producers});
    }
  }
  co_return described;
}

Task<ClusterOutcome> FakeAdmin::elect_leaders(Session&, ElectionRequest request) {
  elect_leaders_asked.push_back(std::move(request));
  co_return cluster_outcome;
}

Task<ClusterOutcome> FakeAdmin::reassign(Session&, ReassignmentRequest request) {
  reassign_asked.push_back(std::move(request));
  co_return cluster_outcome;
}

Task<ReassignmentsListed> FakeAdmin::list_reassignments(
    Session&, std::optional<std::vector<TopicPartitions>> topics) {
  list_reassignments_asked.push_back(std::move(topics));
  co_return reassignments;
}

Task<std::vector<TopicEpochEnds>> FakeBroker::epoch_ends(Session&,
                                                         std::vector<TopicEpochQuery> topics) {
  epoch_ends_asked.push_back(topics);
  std::vector<TopicEpochEnds> ends;
  for (const auto& topic : topics) {
    auto& to = ends.emplace_back(topic.topic);
    for (const auto& query : topic.partitions) {
      to.partitions.push_back({.partition = query.partition, .epoch = query.epoch, .end = {9}});
    }
  }
  co_return ends;
}

Task<InitProducerIdAnswer> FakeBroker::init_producer_id(Session&, InitProducerIdRequest request) {
  init_producer_id_asked.push_back(std::move(request));
  co_return InitProducerIdAnswer{.producer_id = 4000, .producer_epoch = 0};
}

ProduceAnswer plain_answer(const ProduceRequest& request) {
  ProduceAnswer answer;
  for (const auto& topic : request.topics) {
    auto& to = answer.topics.emplace_back(topic.topic);
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back(
          {.partition = partition.partition, .base_offset = {7}, .log_start = {0}});
    }
  }
  return answer;
}

FetchAnswer plain_answer(const FetchRequest& request) {
  FetchAnswer answer;
  for (const auto& topic : request.topics) {
    auto& to = answer.topics.emplace_back(topic.topic);
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back({.partition = partition.partition, .high_watermark = {10}});
    }
  }
  return answer;
}

ListOffsetsAnswer plain_answer(const ListOffsetsRequest& request) {
  ListOffsetsAnswer answer;
  for (const auto& topic : request.topics) {
    auto& to = answer.topics.emplace_back(topic.topic);
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back(
          {.partition = partition.partition, .offset = {42}, .leader_epoch = {3}, .segments = {}});
      if (partition.segments_max > 0) to.partitions.back().segments = {{42}, {7}};
    }
  }
  return answer;
}

std::string bytes_of(const Payload& payload) {
  const auto flat = payload.flatten();
  EXPECT_TRUE(flat);
  return flat ? std::string(flat->text()) : std::string();
}

ConnectionFixture::ConnectionFixture(GroupService* groups)
    : broker(groups),
      settings{.idle_max = std::chrono::minutes(10),
               .frame_bytes_max = 1 << 20,
               .connections_max = 100,
               .requests_in_flight_max = 64,
               .answer_bytes_pending_max = 1 << 20},
      apis(broker),
      context_{settings, apis, broker, Log(log, "kafka"), transport_metrics_,
               "kafka",  1,    groups, nullptr,           &lost} {}

ConnectionFixture::~ConnectionFixture() {
  if (connection) connection->abort();
  shard.run();
  EXPECT_TRUE(!connection || ended) << "a connection did not end after abort()";
  EXPECT_THAT(shard.reports, ::testing::IsEmpty());
}

void ConnectionFixture::connect() {
  load.reset(new ShardLoad{.answers{settings.answer_bytes_pending_max, [](bool) {}},
                           .requests{broker.memory(shard), [this] { ++waits; }}});
  connection =
      std::make_unique<Connection>(context_, shard, *load, std::make_unique<WireStream>(wire));
  auto serve = [](Connection* serving, bool* finished) -> Task<> {
    MR_CO_CHECK(co_await serving->run());
    *finished = true;
    co_return {};
  };
  spawn(shard, serve(connection.get(), &ended), "test");
  shard.run();
}

std::vector<std::int32_t> ConnectionFixture::answered() const {
  std::vector<std::int32_t> ids;
  for (const auto& answer : wire.answers()) ids.push_back(load_be<std::int32_t>(answer.data()));
  return ids;
}

}  // namespace millrace::kafka_transport::testing
