#include "tests/unit/plugins/operators/shipped.h"

namespace millrace::testing {
namespace {

class RouteTest : public ShippedOperator {
 protected:
  RouteTest() : ShippedOperator("route") {}

  static OptionValues with(OptionValues more, Texts topics = {"click=clicks", "a=b=views"}) {
    more.emplace("topics", std::move(topics));
    more.emplace("field", "header.type");
    return more;
  }
  std::string topic_of(OptionValues options, const std::string& type) {
    auto driver = drive(std::move(options));
    EXPECT_TRUE(driver.feed(of_value("v", {{"type", type}})));
    const auto outputs = driver.take_outputs();
    return outputs.empty() ? "dropped" : outputs.at(0).topic;
  }
};

TEST_F(RouteTest, GoesByTheText) {
  EXPECT_EQ(topic_of(with({}), "click"), "clicks");
  EXPECT_EQ(topic_of(with({}), "a=b"), "views");
}

TEST_F(RouteTest, TheOthersGoOnOrElsewhereOrNowhere) {
  EXPECT_EQ(topic_of(with({}), "x"), "");
  EXPECT_EQ(topic_of(with({{"otherwise", "rest"}}), "x"), "rest");
  EXPECT_EQ(topic_of(with({{"otherwise", "rest"}}), "click"), "clicks");
  EXPECT_EQ(topic_of(with({{"drop_others", true}}), "x"), "dropped");
  EXPECT_EQ(topic_of(with({{"drop_others", true}}), "click"), "clicks");
}

TEST_F(RouteTest, GoesByAFieldOfTheValue) {
  auto driver = drive({{"field", "value.kind"}, {"topics", Texts{"1=ones"}}});
  ASSERT_TRUE(driver.feed(of_value(R"({"kind":1})", {{"h", "x"}})));
  const std::vector<OperatorOutput> expected{{.key = "k",
                                              .value = R"({"kind":1})",
                                              .at = 1'000,
                                              .headers = {{"h", "x"}},
                                              .topic = "ones"}};
  EXPECT_EQ(driver.take_outputs(), expected);
  EXPECT_FALSE(driver.feed(of_value("no")));
}

TEST_F(RouteTest, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(refusal(with({}, {"click"})),
            "topics: expected TEXT=TOPIC such as \"click=clicks\", found \"click\"");
  EXPECT_EQ(refusal(with({}, {"a=b", "a=c"})), "topics: \"a\" has two topics");
  EXPECT_EQ(refusal(with({}, {})), "topics: none");
  EXPECT_EQ(refusal(with({{"drop_others", true}, {"otherwise", "rest"}})),
            "drop_others: the others go to rest");
}

}  // namespace
}  // namespace millrace::testing
