#include "tests/unit/plugins/operators/shipped.h"

namespace millrace::testing {
namespace {

class FilterTest : public ShippedOperator {
 protected:
  FilterTest() : ShippedOperator("filter") {}

  bool passes(OptionValues options, const OperatorInput& record) {
    auto driver = drive(std::move(options));
    const auto fed = driver.feed(record);
    EXPECT_TRUE(fed) << fed.error().detail;
    const auto outputs = driver.take_outputs();
    if (outputs.empty()) return false;
    // What goes on is what came in.
    EXPECT_EQ(outputs, (std::vector<OperatorOutput>{{.key = record.key,
                                                     .value = record.value,
                                                     .at = record.at,
                                                     .headers = record.headers}}));
    return true;
  }
  bool passes_json(const std::string& is, const std::string& to, const std::string& found) {
    return passes({{"field", "value.a"}, {"is", is}, {"to", to}},
                  of_value("{\"a\":" + found + "}"));
  }
};

TEST_F(FilterTest, AsksWhetherAPartIsThere) {
  const auto record = of_value("v", {{"type", "click"}});
  EXPECT_TRUE(passes({{"field", "header.type"}}, record));
  EXPECT_FALSE(passes({{"field", "header.other"}}, record));
  EXPECT_TRUE(passes({{"field", "header.other"}, {"is", "absent"}}, record));
  EXPECT_FALSE(passes({{"field", "key"}, {"is", "absent"}}, record));
  EXPECT_TRUE(passes({{"field", "value"}, {"is", "absent"}}, {.key = "k", .at = 1}));
}

TEST_F(FilterTest, ComparesTexts) {
  EXPECT_TRUE(passes_json("equal", "x", "\"x\""));
  EXPECT_FALSE(passes_json("equal", "x", "\"y\""));
  EXPECT_TRUE(passes_json("equal", "1.10", "1.10"));
  EXPECT_TRUE(passes_json("equal", "null", "null"));
  EXPECT_TRUE(passes_json("different", "x", "\"y\""));
  EXPECT_FALSE(passes_json("different", "x", "\"x\""));
  EXPECT_TRUE(passes_json("containing", "el", "\"hello\""));
  EXPECT_FALSE(passes_json("containing", "le", "\"hello\""));
}

TEST_F(FilterTest, WhatIsNotThereIsDifferentAndNothingElse) {
  const auto record = of_value("{}");
  const auto with = [&](const std::string& is, const std::string& to) {
    return passes({{"field", "value.a"}, {"is", is}, {"to", to}}, record);
  };
  EXPECT_TRUE(with("different", "x"));
  EXPECT_FALSE(with("equal", ""));
  EXPECT_FALSE(with("containing", ""));
  EXPECT_FALSE(with("matching", ".*"));
  EXPECT_FALSE(with("below", "5"));
}

TEST_F(FilterTest, FindsAnExpression) {
  EXPECT_TRUE(passes_json("matching", "l+o$", "\"hello\""));
  EXPECT_FALSE(passes_json("matching", "^l+", "\"hello\""));
  // Exponential for an engine that goes back.
  EXPECT_FALSE(passes_json("matching", "^(a+)+$", "\"" + std::string(50'000, 'a') + "b\""));
}

TEST_F(FilterTest, ComparesNumbers) {
  EXPECT_TRUE(passes_json("above", "9.5", "10"));
  EXPECT_FALSE(passes_json("above", "10", "10"));
  EXPECT_TRUE(passes_json("at-least", "10", "1e1"));
  EXPECT_TRUE(passes_json("below", "0", "-1"));
  EXPECT_TRUE(passes_json("at-most", "-1", "\"-1\""));
  for (const auto* is : {"above", "at-least", "below", "at-most"}) {
    EXPECT_FALSE(passes_json(is, "1", "\"one\"")) << is;
    EXPECT_FALSE(passes_json(is, "1", "null")) << is;
    EXPECT_FALSE(passes_json(is, "1", "\"1x\"")) << is;
  }
}

TEST_F(FilterTest, MayDropInstead) {
  const OptionValues options{{"field", "key"}, {"is", "equal"}, {"to", "k"}, {"drop", true}};
  EXPECT_FALSE(passes(options, of_value("v")));
  EXPECT_TRUE(passes(options, {.key = "other", .value = "v", .at = 1}));
}

TEST_F(FilterTest, AValueThatIsNoJsonIsAnErrorOfThatRecord) {
  auto driver = drive({{"field", "value.a"}});
  EXPECT_EQ(values_of(driver, of_value("no")),
            Values{"error: not JSON: syntax error, at byte 1 of 2"});
  EXPECT_EQ(values_of(driver, of_value("{\"a\":1}")), Values{"{\"a\":1}"});
}

TEST_F(FilterTest, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(refusal({{"field", "valeu.a"}}).substr(0, 16), "field: expected ");
  EXPECT_EQ(refusal({{"field", "key"}, {"is", "equal"}}), "to: missing; what is compared with?");
  EXPECT_EQ(refusal({{"field", "key"}, {"is", "present"}, {"to", "x"}}),
            "to: present is compared with nothing");
  EXPECT_EQ(refusal({{"field", "key"}, {"is", "above"}, {"to", "ten"}}),
            "to: expected a number, found \"ten\"");
  EXPECT_EQ(refusal({{"field", "key"}, {"is", "matching"}, {"to", "("}}),
            "to: expected a regular expression, found \"(\": missing ): (");
}

}  // namespace
}  // namespace millrace::testing
