// A stream with state over kills and power cuts at any moment: what comes out may come twice, the
// count in it is exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include <millrace/testing/sim_environment.h>

#include "sim_broker.h"
#include "sim_client.h"

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int32_t partitions = 2;
constexpr int records = 40;  // of each partition

std::string value_of(int number) { return "record " + std::to_string(number); }

std::vector<std::string> sets() {
  return {"plugins.path=[\"" MILLRACE_STREAMS_DIR "\"]", "storage.plugin=filelog",
          "stream.stamp.sources=[\"in\"]", "stream.stamp.sink=out",
          "stream.stamp.steps=[{operator=\"stamp_one\"}]",
          "defaults.\"num.partitions\"=" + std::to_string(partitions),
          // What a stream has read, and committed, is on stable storage.
          "defaults.\"log.flush.interval.messages\"=1"};
}

class StampedStream {
  template <class F>
  auto on_client(F make) {
    return world_.run(*client_.shards()[0], std::move(make));
  }

 public:
  explicit StampedStream(std::uint64_t seed) : world_(seed), broker_(world_, server_, sets()) {}

  /// The broker dies `deaths` times while records come and are stamped.
  SimTrace run(int deaths, bool power) {
    check(broker_.start(), "start");
    check(on_client([this] { return create(client_.network()); }), "create");
    for (int death = 0; death < deaths; ++death) {
      produce_some();
      world_.run_for(milliseconds(world_.random().below(300)));
      power ? broker_.crash() : broker_.kill();
      check(broker_.start(), "start again");
    }
    while (sent_ < records) produce_some();
    for (std::int32_t partition = 0; partition < partitions; ++partition) expect_exact(partition);
    check(broker_.stop(), "stop");
    EXPECT_THAT(server_.reports(), ::testing::IsEmpty());
    return world_.trace();
  }

 private:
  static bool check(const Result<>& result, const char* what) {
    EXPECT_TRUE(result) << what << ": " << to_string(result.error());
    return result.has_value();
  }
  static Task<> create(Network& network) {
    MR_CO_TRY(auto client, co_await connect_to(network, "b1"));
    co_return co_await create_topic(*client, "in", partitions);
  }
  static Task<> produce_to_all(Network& network, int first, int last) {
    MR_CO_TRY(auto client, co_await connect_to(network, "b1"));
    for (int number = first; number < last; ++number) {
      for (std::int32_t partition = 0; partition < partitions; ++partition) {
        auto producing = produce(*client, {"in", partition}, value_of(number));
        MR_CO_CHECK(co_await std::move(producing));
      }
    }
    co_return {};
  }
  static Task<std::vector<std::string>> consume_from(Network& network, std::int32_t partition) {
    MR_CO_TRY(auto client, co_await connect_to(network, "b1"));
    co_return co_await consume(*client, {"out", partition});
  }

  void produce_some() {
    const auto last = std::min(records, sent_ + 1 + static_cast<int>(world_.random().below(15)));
    auto make = [this, last] { return produce_to_all(client_.network(), sent_, last); };
    check(on_client(make), "produce");
    sent_ = last;
  }

  /// Every record is there, once or more often, always with its own number: the count before it.
  void expect_exact(std::int32_t partition) {
    std::map<int, int> times;
    for (int look = 0; look < 100 && times.size() < records; ++look) {
      world_.run_for(milliseconds(100));
      const auto values =
          on_client([this, partition] { return consume_from(client_.network(), partition); });
      ASSERT_TRUE(values) << to_string(values.error());
      times.clear();
      for (const auto& value : *values) {
        const auto colon = value.find(':', 4);
        ASSERT_EQ(value.substr(0, 4), "one:") << value;
        const auto count = std::stoi(value.substr(4, colon - 4));
        ASSERT_EQ(value.substr(colon + 1), value_of(count - 1));
        ++times[count];
      }
    }
    EXPECT_EQ(times.size(), records);
  }

  SimWorld world_;
  SimEnvironment& server_ = world_.add_node("b1", 2);
  SimEnvironment& client_ = world_.add_node("c1");
  SimBroker broker_;
  int sent_ = 0;
};

TEST(SimStreamsTest, EachRecordIsStampedOnce) { StampedStream(1).run(0, false); }

/// One seed each: --gtest_filter='*/power_7' replays that run exactly.
class SimStreamsDeathTest : public ::testing::TestWithParam<int> {};

TEST_P(SimStreamsDeathTest, CountsAreExactAfterKills) {
  StampedStream(static_cast<std::uint64_t>(GetParam())).run(3, false);
}
TEST_P(SimStreamsDeathTest, CountsAreExactAfterPowerCuts) {
  StampedStream(static_cast<std::uint64_t>(GetParam())).run(3, true);
}
INSTANTIATE_TEST_SUITE_P(Seeds, SimStreamsDeathTest, ::testing::Range(1, 11));

TEST(SimStreamsTest, TheSameSeedIsTheSameRun) {
  const auto first = StampedStream(5).run(2, true);
  EXPECT_EQ(first_difference(first, StampedStream(5).run(2, true)), "");
}

}  // namespace
}  // namespace millrace::testing
