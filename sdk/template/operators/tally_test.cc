// The built plugin: against the contract of its kind, and what it does.
#include <gtest/gtest.h>

#include <millrace/testing/operator_contract.h>

namespace millrace::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Tally, OperatorContract,
                         ::testing::Values(OperatorCase{
                             .name = "tally",
                             .plugin = PLUGIN,
                             .options = {{"every_ms", std::int64_t{1'000}}},
                             .records = {{.key = "a", .value = "1", .at = 1'000},
                                         {.key = "b", .value = "2", .at = 1'500},
                                         {.key = "a", .value = "3", .at = 1'900},
                                         {.key = "a", .value = "4", .at = 2'400}}}));

TEST(TallyTest, SendsACountOnWhenItsTimeIsOver) {
  const auto plugin = load_operator(PLUGIN);
  auto driver = plugin->drive({{"every_ms", std::int64_t{1'000}}});
  ASSERT_TRUE(driver) << driver.error().detail;
  ASSERT_TRUE(driver->feed({.key = "a", .value = "x", .at = 1'000}));
  ASSERT_TRUE(driver->feed({.key = "a", .value = "y", .at = 1'999}));
  EXPECT_TRUE(driver->take_outputs().empty());
  ASSERT_TRUE(driver->advance_to(2'000));
  const std::vector<OperatorOutput> expected{{.key = "a", .value = "2", .at = 2'000}};
  EXPECT_EQ(driver->take_outputs(), expected);
  EXPECT_TRUE(driver->state().empty());
}

}  // namespace
}  // namespace millrace::testing
