// Records through a broker of the shipped plugins, with a crash in between: what was acknowledged
// is there afterwards, and the same seed gives the same run to the last byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

#include "sim_broker.h"
#include "sim_client.h"

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int32_t partitions = 3;
constexpr int records_max = 60;

TopicPartition orders(std::int32_t partition) { return {"orders", partition}; }

/// What the broker acknowledged, by partition.
using Acknowledged = std::vector<std::vector<std::string>>;

/// Sends records until one fails: then the connection is gone.
Task<> produce_all(Network& network, Acknowledged& acknowledged, bool& ended) {
  auto connected = co_await connect_to(network, "b1");
  for (int i = 0; connected && i < records_max; ++i) {
    const auto partition = i % partitions;
    auto value = "record " + std::to_string(i);
    auto producing = produce(**connected, orders(partition), value);
    const auto offset = co_await std::move(producing);
    if (!offset) break;
    acknowledged[static_cast<std::size_t>(partition)].push_back(std::move(value));
  }
  ended = true;
  co_return {};
}

Task<> create_orders(Network& network) {
  MR_CO_TRY(auto client, co_await connect_to(network, "b1"));
  co_return co_await create_topic(*client, "orders", partitions);
}

Task<std::vector<std::string>> consume_orders(Network& network, std::int32_t partition) {
  MR_CO_TRY(auto client, co_await connect_to(network, "b1"));
  auto wanted = orders(partition);
  co_return co_await consume(*client, std::move(wanted));
}

enum class Death { none, kill, power };

struct Outcome {
  SimTrace trace;
  std::size_t acknowledged = 0;
};

/// One life of a broker, its end at a moment that the seed chooses, and what a second life serves.
class RoundTrip {
  template <class F>
  auto on_client(F make) {
    return world_.run(*client_.shards()[0], std::move(make));
  }

 public:
  RoundTrip(std::uint64_t seed, std::vector<std::string> sets)
      : world_(seed), broker_(world_, server_, std::move(sets)) {}

  Outcome run(Death death) {
    if (!check(broker_.start(), "start")) return {};
    check(on_client([this] { return create_orders(client_.network()); }), "create");
    produce_until(death);
    if (death == Death::none) {
      check(broker_.stop(), "stop");
    } else {
      EXPECT_TRUE(world_.run_until([this] { return ended_; }, seconds(60)));
    }
    if (!check(broker_.start(), "start again")) return {};
    std::size_t sum = 0;
    for (std::int32_t partition = 0; partition < partitions; ++partition) {
      sum += check_partition(partition);
    }
    check(broker_.stop(), "stop at last");
    EXPECT_THAT(server_.reports(), ::testing::IsEmpty());
    return {world_.trace(), sum};
  }

 private:
  static bool check(const Result<>& result, const char* what) {
    EXPECT_TRUE(result) << what << ": " << to_string(result.error());
    return result.has_value();
  }

  void produce_until(Death death) {
    auto& shard = *client_.shards()[0];
    shard.post([this, &shard] {
      spawn(shard, produce_all(client_.network(), acknowledged_, ended_), "produce");
    });
    if (death == Death::none) {
      EXPECT_TRUE(world_.run_until([this] { return ended_; }, seconds(60)));
      return;
    }
    world_.run_for(milliseconds(world_.random().below(200)));
    death == Death::kill ? broker_.kill() : broker_.crash();
  }

  /// What was acknowledged is a prefix of what is there: the record that was in flight when the
  /// broker died may be there too.
  std::size_t check_partition(std::int32_t partition) {
    const auto values =
        on_client([this, partition] { return consume_orders(client_.network(), partition); });
    EXPECT_TRUE(values) << to_string(values.error());
    const auto& sent = acknowledged_[static_cast<std::size_t>(partition)];
    if (!values) return 0;
    EXPECT_GE(values->size(), sent.size());
    EXPECT_LE(values->size(), sent.size() + 1);
    for (std::size_t i = 0; i < std::min(sent.size(), values->size()); ++i) {
      EXPECT_EQ((*values)[i], sent[i]);
    }
    return sent.size();
  }

  SimWorld world_;
  SimEnvironment& server_ = world_.add_node("b1", 2);
  SimEnvironment& client_ = world_.add_node("c1");
  SimBroker broker_;
  Acknowledged acknowledged_{static_cast<std::size_t>(partitions)};
  bool ended_ = false;
};

const std::string flush_each = R"(defaults."log.flush.interval.messages"=1)";
// So that a partition rolls every few records.
const std::string small_segments = R"(defaults."log.segment.bytes"=300)";

TEST(RoundTripTest, ServesAfterARestartWhatItAcknowledged) {
  RoundTrip trip(1, {});
  EXPECT_EQ(trip.run(Death::none).acknowledged, static_cast<std::size_t>(records_max));
}

/// One seed each: --gtest_filter='*/power_7' replays that run exactly.
class DeathTest : public ::testing::TestWithParam<std::tuple<Death, std::uint64_t>> {};

TEST_P(DeathTest, LeavesWhatWasAcknowledged) {
  const auto& [death, seed] = GetParam();
  std::vector<std::string> sets;
  if (death == Death::power) sets.push_back(flush_each);
  if (seed % 2 == 0) sets.push_back(small_segments);
  RoundTrip trip(seed, std::move(sets));
  trip.run(death);
}

std::string name_of_case(const ::testing::TestParamInfo<DeathTest::ParamType>& tested) {
  const auto& [death, seed] = tested.param;
  return (death == Death::kill ? "kill_" : "power_") + std::to_string(seed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeathTest,
                         ::testing::Combine(::testing::Values(Death::kill, Death::power),
                                            ::testing::Range<std::uint64_t>(1, 21)),
                         name_of_case);

TEST(RoundTripTest, GivesTheSameTraceForTheSameSeed) {
  RoundTrip first(42, {flush_each});
  RoundTrip again(42, {flush_each});
  const auto outcome = first.run(Death::power);
  const auto repeated = again.run(Death::power);
  EXPECT_EQ(first_difference(outcome.trace, repeated.trace), "");
  EXPECT_GT(outcome.acknowledged, 0U);
  RoundTrip other(43, {flush_each});
  EXPECT_NE(other.run(Death::power).trace.hash(), outcome.trace.hash());
}

}  // namespace
}  // namespace millrace::testing
