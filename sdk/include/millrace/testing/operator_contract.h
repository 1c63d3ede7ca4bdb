// What every stream operator must do, as gtest cases. Include it in one source file of a test
// program, name the plugin, the options, and records that it takes; records that make it use its
// state and its timers test the most:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, OperatorContract, ::testing::Values(OperatorCase{
//       .name = "mine", .plugin = "build/plugins/operators/mine.so", .options = {},
//       .records = {{.key = "a", .value = "1", .at = 1'000}, {.key = "b", .value = "2"}}}));
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/loaded_operator.h>
#include <millrace/testing/operator_driver.h>

namespace millrace::testing {

struct OperatorCase {
  std::string name;
  std::string plugin;  ///< path of the shared object
  OptionValues options = {};
  std::vector<OperatorInput> records = {};  ///< which it takes without an error
};
inline void PrintTo(const OperatorCase& one, std::ostream* out) { *out << one.name; }

/// Bytes that mean nothing.
inline std::string garbage_text(std::mt19937& random, std::size_t bytes_max) {
  std::string text(random() % (bytes_max + 1), '\0');
  for (auto& c : text) c = static_cast<char>(random());
  return text;
}

/// Records that nobody has agreed upon: any bytes, or none, where text or JSON may be expected.
inline OperatorInput garbage_record(std::uint32_t seed) {
  static const std::vector<std::string> almost{"",
                                               "{",
                                               "[",
                                               "\"",
                                               "null",
                                               "{}",
                                               "[]",
                                               "0",
                                               "-",
                                               "1e999",
                                               "{\"a\":",
                                               "[1,2",
                                               "\xff\xfe",
                                               std::string("\0", 1),
                                               std::string(2'000, '['),
                                               "{\"a\":{\"a\":{\"a\":1}}}",
                                               "[[],{},null]"};
  std::mt19937 random(seed);
  const auto some = [&random](std::size_t bytes_max) -> std::optional<std::string> {
    switch (random() % 4) {
      case 0: return std::nullopt;
      case 1: return almost[random() % almost.size()];
      default: return garbage_text(random, bytes_max);
    }
  };
  OperatorInput record;
  record.key = some(20);
  record.value = some(200);
  // Far from each other, backwards as well.
  if (random() % 2 == 0) record.at = static_cast<std::int64_t>(random());
  for (auto headers = random() % 4; headers > 0; --headers) {
    record.headers.emplace_back(garbage_text(random, 10), some(20));
  }
  return record;
}

class OperatorContract : public ::testing::TestWithParam<OperatorCase> {
 protected:
  OperatorContract() : loaded_(load_operator(GetParam().plugin)) {}
  void SetUp() override {
    ASSERT_NE(loaded_, nullptr);
    const auto made = loaded_->drive(GetParam().options);
    ASSERT_TRUE(made) << made.error().detail;
  }

  OperatorDriver driver() const {
    auto made = loaded_->drive(GetParam().options);
    return *std::move(made);
  }
  static const std::vector<OperatorInput>& records() { return GetParam().records; }

  /// What it has come to an hour after its last record.
  struct End {
    std::vector<OperatorOutput> outputs;
    OperatorDriver::Checkpoint state;
  };
  static End end_of(OperatorDriver& driver) {
    EXPECT_TRUE(driver.advance_by(std::chrono::hours(1)));
    return {driver.take_outputs(), driver.checkpoint()};
  }
  /// All records, one after the other; `before_each` runs before each.
  End run(const std::function<void(OperatorDriver&)>& before_each = {}) const {
    auto one = driver();
    for (const auto& record : records()) {
      if (before_each) before_each(one);
      const auto fed = one.feed(record);
      EXPECT_TRUE(fed) << fed.error().detail;
    }
    return end_of(one);
  }

  static void expect_same(const End& found, const End& expected) {
    EXPECT_EQ(found.outputs, expected.outputs);
    EXPECT_EQ(found.state.state, expected.state.state);
    EXPECT_EQ(found.state.timers, expected.state.timers);
  }

  std::shared_ptr<LoadedOperator> loaded_;
};

TEST_P(OperatorContract, TakesItsRecordsAndDoesSomething) {
  ASSERT_FALSE(records().empty());
  const auto end = run();
  EXPECT_FALSE(end.outputs.empty() && end.state.state.empty());
}

TEST_P(OperatorContract, SameInputGivesTheSameOutput) { expect_same(run(), run()); }

TEST_P(OperatorContract, ARestartChangesNothing) {
  expect_same(run([](OperatorDriver& one) { one.restart(); }), run());
}

TEST_P(OperatorContract, GoesOnFromWhatWasCommitted) {
  const auto expected = run();
  for (std::size_t committed_at = 0; committed_at < records().size(); ++committed_at) {
    auto one = driver();
    for (std::size_t at = 0; at < committed_at; ++at) ASSERT_TRUE(one.feed(records()[at]));
    const auto committed = one.checkpoint();
    const auto before = one.take_outputs();
    for (std::size_t at = committed_at; at < records().size(); ++at) {
      ASSERT_TRUE(one.feed(records()[at]));
    }
    one.take_outputs();
    one.crash(committed);
    for (std::size_t at = committed_at; at < records().size(); ++at) {
      ASSERT_TRUE(one.feed(records()[at]));
    }
    auto end = end_of(one);
    end.outputs.insert(end.outputs.begin(), before.begin(), before.end());
    SCOPED_TRACE("committed after " + std::to_string(committed_at) + " records");
    expect_same(end, expected);
  }
}

TEST_P(OperatorContract, PartitionsDoNotKnowOfEachOther) {
  auto one = driver();
  auto other = driver();
  for (const auto& record : records()) {
    ASSERT_TRUE(one.feed(record));
    ASSERT_TRUE(other.feed(record));
  }
  const auto expected = run();
  expect_same(end_of(one), expected);
  expect_same(end_of(other), expected);
}

// A record that fails: the stream's error policy may skip it, and go on.
TEST_P(OperatorContract, ARecordThatFailsLeavesNothingBehind) {
  auto one = driver();
  std::vector<OperatorOutput> outputs;
  std::uint32_t seed = 0;
  for (const auto& record : records()) {
    for (int times = 0; times < 20; ++times) {
      const auto before = one.checkpoint();
      auto garbage = garbage_record(seed++);
      garbage.at = -1;
      // What it takes is no failure: it is as if that had not been.
      if (one.feed(garbage)) one.crash(before);
      one.take_outputs();
    }
    const auto fed = one.feed(record);
    ASSERT_TRUE(fed) << fed.error().detail;
    for (auto& output : one.take_outputs()) outputs.push_back(std::move(output));
  }
  auto end = end_of(one);
  end.outputs.insert(end.outputs.begin(), outputs.begin(), outputs.end());
  expect_same(end, run());
}

// The stream's memory is used up in the middle of a call, which is made again later.
TEST_P(OperatorContract, ACallThatIsCutShortCanBeMadeAgain) {
  const auto expected = run();
  for (std::size_t cut_at = 1; cut_at <= 5; ++cut_at) {
    auto one = driver();
    for (const auto& record : records()) {
      one.throw_at(cut_at);
      auto fed = one.feed(record);
      one.throw_at(0);
      if (!fed) fed = one.feed(record);
      ASSERT_TRUE(fed) << fed.error().detail;
    }
    SCOPED_TRACE("cut short at call " + std::to_string(cut_at));
    expect_same(end_of(one), expected);
  }
}

TEST_P(OperatorContract, TakesGarbageOrSaysWhatIsWrongWithIt) {
  auto one = driver();
  for (std::uint32_t seed = 0; seed < 3'000; ++seed) {
    const auto fed = one.feed(garbage_record(seed));
    if (fed) continue;
    EXPECT_FALSE(fed.error().detail.empty()) << "seed " << seed;
    // An error is an error: what is thrown costs more, and says less.
    EXPECT_NE(fed.error().code, Errc::internal) << "seed " << seed << ": " << fed.error().detail;
  }
}

}  // namespace millrace::testing
