#include <millrace/testing/operator_driver.h>

#include <stdexcept>

#include <gtest/gtest.h>

namespace millrace::testing {
namespace {

using namespace std::chrono_literals;

// Counts by key; a minute after the first record of a key its count comes out. Values that it
// knows: "fail" (after it has changed everything), "throw", "log", "keep" (a view of the state).
class MinuteCount final : public Operator {
 public:
  explicit MinuteCount(const OperatorSetup& setup)
      : log_(setup.log), step_(setup.options.integer("step")) {}

  Result<> process(const RecordView& input, Emitter& out) override {
    const auto said = as_text(*input.value);
    const auto key = *input.key;
    const auto before = out.state().get(key);
    const auto count = (before ? std::stoll(std::string(as_text(*before))) : 0) + step_;
    out.state().put(key, as_bytes(std::to_string(count)));
    if (!before) out.set_timer(key, {input.timestamp.ms + 60'000});
    if (said == "fail" || said == "throw")
      out.emit({.key = key, .value = {}, .timestamp = {}, .headers = {}, .topic = {}});
    if (said == "fail") return Error{Errc::invalid_argument, "told to fail"};
    if (said == "throw") throw std::runtime_error("told to throw");
    if (said == "log") log_.warning("told to log", {{"source", to_string(out.source())}});
    if (said == "later") out.pause(10ms);
    return {};
  }

  Result<> timer(Bytes name, Emitter& out) override {
    const HeaderView header{"time", as_bytes("up")};
    out.emit({.key = name,
              .value = out.state().get(name),
              .timestamp = {},
              .headers = {&header, 1},
              .topic = "counts"});
    out.state().erase(name);
    return {};
  }

 private:
  Log log_;
  std::int64_t step_;
};

class MinuteCounts final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    if (setup.options.integer("step") == 0) return Error{Errc::invalid_argument, "step is 0"};
    return std::make_unique<MinuteCount>(setup);
  }
};

constexpr MillraceOption declared[] = {
    {"step", MILLRACE_OPTION_INTEGER, nullptr, "1", 0, 10, nullptr, "How much a record counts.", 0},
    {}};

class OperatorDriverTest : public ::testing::Test {
 protected:
  OperatorDriver make(OptionValues options = {}) {
    return *OperatorDriver::make(factory_, std::move(options), declared);
  }
  MinuteCounts factory_;
  OperatorDriver driver_ = make();
};

OperatorInput record(std::string key, std::int64_t at, std::string value = "x") {
  return {.key = std::move(key), .value = std::move(value), .at = at};
}

TEST_F(OperatorDriverTest, TimersAreCalledBeforeTheRecordThatMovesTheTime) {
  ASSERT_TRUE(driver_.feed(record("a", 1'000)));
  ASSERT_TRUE(driver_.feed(record("a", 2'000)));
  EXPECT_TRUE(driver_.take_outputs().empty());
  EXPECT_EQ(driver_.timers().at("a"), 61'000);
  ASSERT_TRUE(driver_.feed(record("a", 70'000)));
  const std::vector<OperatorOutput> expected{
      {.key = "a", .value = "2", .at = 61'000, .headers = {{"time", "up"}}, .topic = "counts"}};
  EXPECT_EQ(driver_.take_outputs(), expected);
  EXPECT_EQ(driver_.state().at("a"), "1");
  EXPECT_EQ(driver_.timers().at("a"), 130'000);
}

TEST_F(OperatorDriverTest, TimeMovesWithoutARecordAndNeverBack) {
  ASSERT_TRUE(driver_.feed(record("a", 1'000)));
  ASSERT_TRUE(driver_.feed(record("b", 500)));
  EXPECT_EQ(driver_.stream_time(), Timestamp{1'000});
  EXPECT_EQ(driver_.timers().at("b"), 60'500);
  ASSERT_TRUE(driver_.advance_by(60s));
  const auto outputs = driver_.take_outputs();
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].key, "b");
  EXPECT_EQ(outputs[1].key, "a");
}

TEST_F(OperatorDriverTest, ACallThatFailsLeavesNothingBehind) {
  for (const auto* how : {"fail", "throw"}) {
    const auto failed = driver_.feed(record("a", 1'000, how));
    ASSERT_FALSE(failed);
    EXPECT_TRUE(driver_.state().empty());
    EXPECT_TRUE(driver_.timers().empty());
    EXPECT_TRUE(driver_.take_outputs().empty());
  }
  EXPECT_EQ(driver_.feed(record("a", 1'000, "throw")).error().detail, "it threw: told to throw");
}

TEST_F(OperatorDriverTest, ACrashGoesBackToWhatWasCommitted) {
  ASSERT_TRUE(driver_.feed(record("a", 1'000)));
  const auto committed = driver_.checkpoint();
  ASSERT_TRUE(driver_.feed(record("a", 70'000)));
  driver_.take_outputs();
  driver_.crash(committed);
  EXPECT_EQ(driver_.checkpoint(), committed);
  ASSERT_TRUE(driver_.feed(record("a", 70'000)));
  EXPECT_EQ(driver_.take_outputs().size(), 1U);
}

TEST_F(OperatorDriverTest, ACallIsCutShortWhereTheTestSays) {
  driver_.throw_at(1);
  EXPECT_FALSE(driver_.feed(record("a", 1'000)));
  driver_.throw_at(3);
  EXPECT_TRUE(driver_.feed(record("a", 1'000)));
  EXPECT_FALSE(driver_.feed(record("a", 70'000)));  // the timer's emit
  driver_.throw_at(0);
  EXPECT_TRUE(driver_.take_outputs().empty());
  EXPECT_TRUE(driver_.feed(record("a", 70'000)));
  EXPECT_EQ(driver_.take_outputs().size(), 1U);
}

TEST_F(OperatorDriverTest, OptionsAreCheckedByTheOperator) {
  const auto refused = OperatorDriver::make(factory_, {{"step", std::int64_t{0}}}, declared);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "step is 0");
  auto twos = make({{"step", std::int64_t{2}}});
  ASSERT_TRUE(twos.feed(record("a", 1)));
  EXPECT_EQ(twos.state().at("a"), "2");
}

TEST_F(OperatorDriverTest, TellsWhatWasLoggedAndHowLongItPaused) {
  ASSERT_TRUE(driver_.feed(record("a", 1, "log")));
  EXPECT_EQ(driver_.log_lines(),
            std::vector<std::string>{"warning test: told to log source=input-0"});
  ASSERT_TRUE(driver_.feed(record("a", 1, "later")));
  ASSERT_TRUE(driver_.feed(record("a", 1, "later")));
  EXPECT_EQ(driver_.take_pause(), 20ms);
  EXPECT_EQ(driver_.take_pause(), 0ms);
}

}  // namespace
}  // namespace millrace::testing
