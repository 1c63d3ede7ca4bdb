// What the tests of the shipped operators have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/loaded_operator.h>

namespace millrace::testing {

class ShippedOperator : public ::testing::Test {
 protected:
  explicit ShippedOperator(std::string name)
      : loaded_(load_operator(MILLRACE_PLUGIN_DIR "/operators/" + std::move(name) + ".so")) {}

  OperatorDriver drive(OptionValues options) {
    auto driver = loaded_->drive(std::move(options));
    EXPECT_TRUE(driver) << driver.error().detail;
    return *std::move(driver);
  }
  /// Why such options are refused.
  std::string refusal(OptionValues options) {
    const auto driver = loaded_->drive(std::move(options));
    return driver ? "none" : driver.error().detail;
  }

  std::shared_ptr<LoadedOperator> loaded_;
};

inline OperatorInput of_value(std::string value, HeaderTexts headers = {}) {
  return {.key = "k", .value = std::move(value), .at = 1'000, .headers = std::move(headers)};
}
/// What comes out for one record: values, or why it failed.
inline std::vector<std::string> values_of(OperatorDriver& driver, const OperatorInput& record) {
  const auto fed = driver.feed(record);
  if (!fed) return {"error: " + fed.error().detail};
  std::vector<std::string> values;
  for (const auto& output : driver.take_outputs()) {
    values.push_back(output.value.value_or("none"));
  }
  return values;
}
using Values = std::vector<std::string>;
using Texts = std::vector<std::string>;

}  // namespace millrace::testing
