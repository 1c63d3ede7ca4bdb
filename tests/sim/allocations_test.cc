// What a request asks of malloc does not depend on how many records its batches have. Counted in a
// whole broker of the shipped plugins, with its client and the simulated machines around both,
// whose share is the same for requests of the same size.
#include <atomic>
#include <cstdlib>

#include <gtest/gtest.h>

#include <millrace/batch.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/produce.h>
#include <millrace/testing/sim_environment.h>

#include "sim_broker.h"
#include "sim_client.h"

namespace {
constinit std::atomic<std::uint64_t> allocations{0};
}  // namespace

// The C library's own, under the name by which programs of their own malloc reach it.
// NOLINTNEXTLINE(*-reserved-identifier)
extern "C" void* __libc_malloc(std::size_t bytes);
// NOLINTNEXTLINE(*-reserved-identifier)
extern "C" void* __libc_realloc(void* memory, std::size_t bytes);

// In place of the C library's, for this program and all plugins in it; operator new calls it.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" [[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" [[gnu::visibility("default")]] void* realloc(void* memory, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}

namespace millrace::testing {
namespace {

constexpr std::size_t many = 1000;
constexpr std::size_t value_bytes = 50;
constexpr int rounds = 40;
constexpr int warm_up_rounds = 10;
constexpr std::int32_t fetch_bytes_max = 1 << 20;
constexpr Timestamp written{1'735'689'600'000};

template <class T>
T need(Result<T> result) {
  MR_ASSERT(result.has_value());
  return *std::move(result);
}

Buffer batch_of(std::size_t records, std::size_t bytes_each) {
  BatchBuilder builder({});
  const std::string value(bytes_each, 'v');
  for (std::size_t n = 0; n < records; ++n) builder.add(written, std::nullopt, as_bytes(value));
  return need(std::move(builder).finish());
}

/// One record in as many bytes as that batch has.
Buffer one_record_as_large_as(const Buffer& other) {
  auto bytes = other.size();
  auto batch = batch_of(1, bytes);
  while (batch.size() > other.size()) batch = batch_of(1, bytes -= batch.size() - other.size());
  MR_ASSERT(batch.size() == other.size());
  return batch;
}

Task<> produce_batch(kafka::Client& client, Uuid id, std::int32_t partition, Buffer batch) {
  kafka::ProduceRequest request;
  request.acks = 1;
  request.timeout_ms = 10'000;
  auto& topic = request.topic_data.emplace_back();
  topic.name = "orders";
  topic.topic_id = id;
  auto& data = topic.partition_data.emplace_back();
  data.index = partition;
  data.records = std::move(batch);
  MR_CO_TRY(const auto answer, co_await client.call(std::move(request)));
  const auto error = answer.responses.at(0).partition_responses.at(0).error_code;
  if (error != 0) co_return Error{Errc::internal, "produced: " + std::to_string(error)};
  co_return {};
}

Task<> fetch_batch(kafka::Client& client, Uuid id, std::int32_t partition, std::size_t bytes) {
  kafka::FetchRequest request;
  request.max_wait_ms = 100;
  request.min_bytes = 1;
  request.max_bytes = fetch_bytes_max;
  auto& topic = request.topics.emplace_back();
  topic.topic = "orders";
  topic.topic_id = id;
  auto& wanted = topic.partitions.emplace_back();
  wanted.partition = partition;
  wanted.partition_max_bytes = static_cast<std::int32_t>(bytes);
  MR_CO_TRY(const auto answer, co_await client.call(std::move(request)));
  const auto& fetched = answer.responses.at(0).partitions.at(0);
  if (!fetched.records || fetched.records->size() != bytes) {
    co_return Error{Errc::internal, "another batch was fetched"};
  }
  co_return {};
}

/// How often malloc was called for one request of `ask`, in the mean.
template <class Ask>
Task<> count(Ask ask, double& per_request) {
  for (int n = 0; n < warm_up_rounds; ++n) MR_CO_CHECK(co_await ask());
  const auto before = allocations.load();
  for (int n = 0; n < rounds; ++n) MR_CO_CHECK(co_await ask());
  per_request = static_cast<double>(allocations.load() - before) / rounds;
  co_return {};
}

struct Counts {
  double produced_one = 0;
  double produced_many = 0;
  double fetched_one = 0;
  double fetched_many = 0;
};

Task<> count_all(Network& network, Counts& counts) {
  MR_CO_TRY(auto client, co_await connect_to(network, "b1"));
  MR_CO_CHECK(co_await create_topic(*client, "orders", 2));
  MR_CO_TRY(const auto id, co_await topic_id(*client, "orders"));
  const auto large = batch_of(many, value_bytes);
  const auto single = one_record_as_large_as(large);
  const auto bytes = large.size();
  auto produce_one = [&] { return produce_batch(*client, id, 0, single); };
  auto produce_many = [&] { return produce_batch(*client, id, 1, large); };
  auto fetch_one = [&, bytes] { return fetch_batch(*client, id, 0, bytes); };
  auto fetch_many = [&, bytes] { return fetch_batch(*client, id, 1, bytes); };
  MR_CO_CHECK(co_await count(produce_one, counts.produced_one));
  MR_CO_CHECK(co_await count(produce_many, counts.produced_many));
  MR_CO_CHECK(co_await count(fetch_one, counts.fetched_one));
  MR_CO_CHECK(co_await count(fetch_many, counts.fetched_many));
  co_return {};
}

TEST(AllocationsTest, AreAsManyForOneRecordAsForAThousand) {
  SimWorld world(1);
  auto& server = world.add_node("b1", 1);
  auto& client = world.add_node("c1");
  SimBroker broker(world, server);
  const auto started = broker.start();
  ASSERT_TRUE(started) << to_string(started.error());
  Counts counts;
  const auto counted =
      world.run(*client.shards()[0], [&] { return count_all(client.network(), counts); });
  ASSERT_TRUE(counted) << to_string(counted.error());
  ASSERT_TRUE(broker.stop());

  RecordProperty("produced", std::to_string(counts.produced_many));
  RecordProperty("fetched", std::to_string(counts.fetched_many));
  // Chance cuts what the simulated network carries into pieces, each of which takes a few. One for
  // each record would be a thousand.
  constexpr double by_chance = many / 20.0;
  EXPECT_NEAR(counts.produced_many, counts.produced_one, by_chance);
  EXPECT_NEAR(counts.fetched_many, counts.fetched_one, by_chance);
  EXPECT_GT(counts.produced_one, 10) << "nothing was counted";
}

}  // namespace
}  // namespace millrace::testing
