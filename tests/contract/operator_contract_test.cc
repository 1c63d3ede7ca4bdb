// The shipped stream operators against the contract.
#include <gtest/gtest.h>

#include <millrace/testing/operator_contract.h>

namespace millrace::testing {
namespace {

OperatorCase shipped(const std::string& name, OptionValues options) {
  std::vector<OperatorInput> records;
  for (int n = 0; n < 12; ++n) {
    OperatorInput record;
    record.key = std::to_string(n % 5);
    record.value = R"({"id":)" + std::to_string(n % 4) + R"(,"list":[1,{"id":"a"}],"x":null})";
    record.at = 1'000 + 700 * n;
    record.headers = {{"type", n % 3 == 0 ? "a" : "b"}};
    records.push_back(std::move(record));
  }
  records.push_back({.key = "5", .value = std::nullopt, .at = 20'000});
  return {name, MILLRACE_PLUGIN_DIR "/operators/" + name + ".so", std::move(options),
          std::move(records)};
}

using Texts = std::vector<std::string>;

INSTANTIATE_TEST_SUITE_P(
    Shipped, OperatorContract,
    ::testing::Values(
        shipped("dedup", {{"field", "value.id"}, {"within_ms", std::int64_t{2'000}}}),
        shipped("filter", {{"field", "value.id"}, {"is", "below"}, {"to", "2"}}),
        shipped("flatten", {{"field", "value.list"}, {"key", "value.id"}}),
        shipped("map", {{"drop", Texts{"value.x", "header.type"}}, {"redact", Texts{"value.id"}}}),
        shipped("route", {{"field", "value.id"}, {"topics", Texts{"1=ones", "2=twos"}}}),
        shipped("throttle", {{"records_per_second", 100.0}})),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace millrace::testing
