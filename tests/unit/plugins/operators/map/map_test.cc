#include "tests/unit/plugins/operators/shipped.h"

namespace millrace::testing {
namespace {

constexpr auto order = R"({"id":7,"user":{"name":"Ann","mail":"ann@example.org","tags":["a","b"]},)"
                       R"("items":[{"sku":"x","price":1.10},{"sku":"y","price":20}],"note":null})";

class MapTest : public ShippedOperator {
 protected:
  MapTest() : ShippedOperator("map") {}

  std::string mapped(OptionValues options, const std::string& value = order) {
    auto driver = drive(std::move(options));
    const auto values = values_of(driver, of_value(value));
    return values.size() == 1 ? values[0] : "not one record";
  }
  static OptionValue list(std::initializer_list<const char*> texts) {
    return Texts(texts.begin(), texts.end());
  }
};

TEST_F(MapTest, KeepsWhatIsNamedAndNothingBeside) {
  EXPECT_EQ(mapped({{"keep", list({"value.id", "value.user.name"})}}),
            R"({"id":7,"user":{"name":"Ann"}})");
  EXPECT_EQ(mapped({{"keep", list({"value.user"})}}),
            R"({"user":{"name":"Ann","mail":"ann@example.org","tags":["a","b"]}})");
  EXPECT_EQ(mapped({{"keep", list({"value.items.sku"})}}),
            R"({"items":[{"sku":"x"},{"sku":"y"}]})");
  EXPECT_EQ(mapped({{"keep", list({"value.none"})}}), "{}");
  // It has no members, so none of them is kept.
  EXPECT_EQ(mapped({{"keep", list({"value.id.x", "value.note"})}}), R"({"note":null})");
  EXPECT_EQ(mapped({{"keep", list({"value.user", "value.user.name"})}}),
            mapped({{"keep", list({"value.user"})}}));
}

TEST_F(MapTest, DropsWhatIsNamed) {
  EXPECT_EQ(mapped({{"drop", list({"value.user", "value.items.price", "value.note.x"})}}),
            R"({"id":7,"items":[{"sku":"x"},{"sku":"y"}],"note":null})");
}

TEST_F(MapTest, RenamesInPlace) {
  EXPECT_EQ(mapped({{"rename", list({"value.user.mail=e.mail", "value.items=lines"})},
                    {"keep", list({"value.user.mail", "value.items.price"})}}),
            R"({"user":{"e.mail":"ann@example.org"},"lines":[{"price":1.10},{"price":20}]})");
}

TEST_F(MapTest, RedactsWhateverItIs) {
  EXPECT_EQ(mapped({{"keep", list({"value.user", "value.note"})},
                    {"redact", list({"value.user.mail", "value.user.tags", "value.note"})}}),
            R"({"user":{"name":"Ann","mail":"***","tags":"***"},"note":"***"})");
  EXPECT_EQ(mapped({{"redact", list({"value.user"})},
                    {"keep", list({"value.user"})},
                    {"rename", list({"value.user=u"})},
                    {"redacted", "-"}}),
            R"({"u":"-"})");
}

TEST_F(MapTest, WhatItDoesNotTouchStaysAsItIs) {
  const std::string value = R"({"a":1.10,"b":12345678901234567890.5,"c":"\u0001\"ü","d":[[{}]]})";
  EXPECT_EQ(mapped({{"drop", list({"value.none"})}}, value), value);
}

TEST_F(MapTest, AnArrayOfObjectsIsMappedElementByElement) {
  EXPECT_EQ(mapped({{"drop", list({"value.a"})}}, R"([{"a":1,"b":2},{"b":3},4])"),
            R"([{"b":2},{"b":3},4])");
}

TEST_F(MapTest, Headers) {
  const auto record = of_value("not JSON", {{"a", "1"}, {"b", "2"}, {"c", std::nullopt}});
  const auto headers = [&](OptionValues options) {
    auto driver = drive(std::move(options));
    EXPECT_TRUE(driver.feed(record));
    const auto outputs = driver.take_outputs();
    EXPECT_EQ(outputs.at(0).value, "not JSON");
    return outputs.at(0).headers;
  };
  EXPECT_EQ(headers({{"keep", list({"header.a"})}}), (HeaderTexts{{"a", "1"}}));
  EXPECT_EQ(headers({{"drop", list({"header.a"})}}),
            (HeaderTexts{{"b", "2"}, {"c", std::nullopt}}));
  EXPECT_EQ(headers({{"rename", list({"header.a=x"})}, {"redact", list({"header.b", "header.c"})}}),
            (HeaderTexts{{"x", "1"}, {"b", "***"}, {"c", std::nullopt}}));
}

TEST_F(MapTest, ATombstoneGoesOn) {
  auto driver = drive({{"drop", list({"value.a"})}});
  EXPECT_EQ(values_of(driver, {.key = "k", .at = 1}), Values{"none"});
}

TEST_F(MapTest, WhatHasNoMembersIsAnErrorOfThatRecord) {
  auto driver = drive({{"drop", list({"value.a"})}});
  EXPECT_EQ(values_of(driver, of_value("\"secret\"")),
            Values{"error: the value is neither a JSON object nor an array"});
  EXPECT_EQ(values_of(driver, of_value("{\"a\":")).at(0).substr(0, 16), "error: not JSON:");
}

TEST_F(MapTest, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(refusal({}), "none of keep, drop, rename and redact is set");
  EXPECT_EQ(refusal({{"drop", list({"key"})}}),
            "drop: expected header.NAME or value.PATH, found \"key\"");
  EXPECT_EQ(refusal({{"rename", list({"value.a"})}}),
            "rename: expected PART=NAME such as \"value.user.mail=email\", found \"value.a\"");
  EXPECT_EQ(refusal({{"rename", list({"value.a=b", "value.a=c"})}}),
            "rename: value.a gets two names");
  EXPECT_EQ(refusal({{"keep", list({"value.a"})}, {"drop", list({"value.a"})}}),
            "drop: value.a is to be kept as well");
}

}  // namespace
}  // namespace millrace::testing
