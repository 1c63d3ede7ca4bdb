// The three plugins as they were built: against the contract of operators, and what they do.
#include <gtest/gtest.h>

#include <millrace/entity.h>
#include <millrace/testing/aggregate_driver.h>
#include <millrace/testing/operator_contract.h>

namespace millrace::testing {
namespace {

const std::vector<OperatorInput> records{
    {.key = "1", .value = "to be or not", .at = 1'000, .headers = {{"from", "a play"}}},
    {.key = "2", .value = "to be", .at = 2'000},
    {.key = "3", .value = std::nullopt, .at = 3'000}};

INSTANTIATE_TEST_SUITE_P(
    Examples, OperatorContract,
    ::testing::Values(OperatorCase{"contains", PLUGINS "/contains.so", {{"text", "or"}}, records},
                      OperatorCase{"word_count", PLUGINS "/word_count.so", {}, records}),
    [](const auto& one) { return one.param.name; });

TEST(ContainsTest, LetsThroughWhatContainsTheText) {
  const auto contains = load_operator(PLUGINS "/contains.so");
  auto driver = contains->drive({{"text", "or"}});
  ASSERT_TRUE(driver) << driver.error().detail;
  for (const auto& record : records) ASSERT_TRUE(driver->feed(record));
  const std::vector<OperatorOutput> expected{
      {.key = "1", .value = "to be or not", .at = 1'000, .headers = {{"from", "a play"}}}};
  EXPECT_EQ(driver->take_outputs(), expected);
}

TEST(ContainsTest, ASearchForNothingIsRefused) {
  const auto contains = load_operator(PLUGINS "/contains.so");
  const auto refused = contains->drive({{"text", ""}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "text: empty, every record has that");
}

TEST(WordCountTest, CountsOverRecordsAndRestarts) {
  const auto word_count = load_operator(PLUGINS "/word_count.so");
  auto driver = word_count->drive();
  ASSERT_TRUE(driver->feed(records[0]));
  driver->restart();
  driver->take_outputs();
  ASSERT_TRUE(driver->feed(records[1]));
  const std::vector<OperatorOutput> expected{{.key = "to", .value = "2", .at = 2'000},
                                             {.key = "be", .value = "2", .at = 2'000}};
  EXPECT_EQ(driver->take_outputs(), expected);
  EXPECT_EQ(driver->state().at("not"), "1");
}

TEST(BankTest, MovesMoneyAndNeverOverdraws) {
  SimWorld world(1);
  auto bank = load_plugin(PLUGINS "/bank.so", world.add_node("bank"));
  ASSERT_TRUE(bank) << bank.error().detail;
  AggregateDriver driver(*bank->registered().aggregates.at(0));
  const auto said = [&](std::string_view command, std::optional<std::int64_t> version = {}) {
    const auto token = driver.send("alice", entity_command(command, version));
    const auto& answer = *driver.answer(token);
    if (answer.error != ErrorCode::none) return answer.detail;
    return std::string(dynamic_cast<const BytesMessage&>(*answer.message).bytes.text());
  };
  EXPECT_EQ(said("deposit 500"), "500");
  EXPECT_EQ(said("withdraw 200", 1), "300");
  EXPECT_EQ(said("withdraw 200", 1), "\"alice\" has version 2, expected 1");
  EXPECT_EQ(said("withdraw 301"), "there are 300");
  EXPECT_EQ(said("deposit -5"), "expected an amount above 0");
  EXPECT_EQ(said("deposit"), "expected a number, found \"\"");
  EXPECT_EQ(said("dance"), "expected deposit or withdraw, found dance");
  ASSERT_TRUE(driver.take_snapshot());
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(said("withdraw 300"), "0");
}

}  // namespace
}  // namespace millrace::testing
