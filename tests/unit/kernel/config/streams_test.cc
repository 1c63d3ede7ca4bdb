// [stream.NAME]: what is read, and every way to be wrong, with its place.
#include "config_fixture.h"

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using StreamTablesTest = ConfigFixture;

TEST_F(StreamTablesTest, EverythingIsRead) {
  const auto settings = check({.path = write("millrace.toml",
                                             "[stream.clean]\n"
                                             "sources = [\"a\", \"b\"]\n"
                                             "sink = \"c\"\n"
                                             "from = \"latest\"\n"
                                             "on-error = \"dead-letter\"\n"
                                             "dead-letter = \"d\"\n"
                                             "memory = 2000000\n"
                                             "timeout = 500\n"
                                             "[[stream.clean.steps]]\n"
                                             "operator = \"filelog\"\n"
                                             "sync = \"always\"\n"
                                             "[[stream.clean.steps]]\n"
                                             "operator = \"filelog\"\n"
                                             "name = \"again\"\n"),
                               .sets = {}});
  ASSERT_TRUE(settings);
  ASSERT_EQ(settings->streams.size(), 1);
  const auto& [spec, steps, place] = settings->streams[0];
  EXPECT_EQ(spec.name, "clean");
  EXPECT_THAT(spec.sources, ElementsAre("a", "b"));
  EXPECT_EQ(spec.sink, "c");
  EXPECT_EQ(spec.guarantee, "at-least-once");
  EXPECT_EQ(spec.from, "latest");
  EXPECT_EQ(spec.on_error, "dead-letter");
  EXPECT_EQ(spec.dead_letter, "d");
  EXPECT_EQ(spec.memory_bytes, 2'000'000);
  EXPECT_EQ(spec.timeout_ms, 500);
  ASSERT_EQ(spec.steps.size(), 2);
  EXPECT_EQ(spec.steps[0].name, "filelog") << "that of its operator";
  EXPECT_EQ(spec.steps[1].name, "again");
  EXPECT_EQ(place.line, 1);
  ASSERT_EQ(steps.size(), 2);
  EXPECT_EQ(steps[0].options.text("sync"), "always");
  EXPECT_EQ(steps[0].place.line, 10);
  EXPECT_EQ(steps[0].places.at("sync").line, 11);
  EXPECT_EQ(steps[0].places.at("sync").column, 8);
  EXPECT_EQ(steps[1].options.text("sync"), "none") << "its default";
  EXPECT_EQ(steps[1].place.line, 13);
  EXPECT_THAT(steps[1].places, IsEmpty());
}

TEST_F(StreamTablesTest, ASetReachesIt) {
  EXPECT_THAT(problems({.path = "",
                        .sets = {"stream.x.sources=[\"a\"]", "stream.x.on-error=skip",
                                 "stream.x.steps=[{operator=\"filelog\"}]"}}),
              IsEmpty());
}

TEST_F(StreamTablesTest, WhatIsMissing) {
  EXPECT_THAT(problems_in("[stream.x]\n"),
              ElementsAre("millrace.toml:1:9: [stream.x] needs sources: a list of texts, such as "
                          "[\"a\", \"b\"]",
                          "millrace.toml:1:9: stream.x: expected its steps: [[stream.x.steps]] and "
                          "operator = \"NAME\""));
  EXPECT_THAT(problems_in("[stream.x]\nsources = [\"a\"]\nsteps = [{}]\n"),
              ElementsAre("millrace.toml:3:10: [stream.x.steps[0]] needs operator: a text"));
  EXPECT_THAT(problems_in("[stream.x]\nsources = [\"a\"]\n[[stream.x.steps]]\n"
                          "operator = \"zookeeper\"\n"),
              ElementsAre("millrace.toml:3:1: [stream.x.steps[0]] needs connect: a text"));
}

TEST_F(StreamTablesTest, WhatIsUnknown) {
  EXPECT_THAT(problems_in("[stream.x]\nsources = [\"a\"]\nsinc = \"b\"\n[[stream.x.steps]]\n"
                          "operator = \"filelog\"\nsinc = \"none\"\n"),
              ElementsAre(StartsWith("millrace.toml:3:1: unknown key stream.x.sinc; nearest known: "
                                     "sink; [stream.x] has "),
                          "millrace.toml:6:1: unknown key stream.x.steps[0].sinc; nearest known: "
                          "sync; [stream.x.steps[0]] has sync"));
}

TEST_F(StreamTablesTest, WhatHasTheWrongShape) {
  EXPECT_THAT(problems_in("[stream]\nx = 1\n"),
              ElementsAre("millrace.toml:2:1: stream.x stands in the table of one stream, such as "
                          "[stream.clean]"));
  EXPECT_THAT(problems_in("[stream.x]\nsources = [\"a\"]\nsteps = \"filelog\"\n"),
              ElementsAre(StartsWith("millrace.toml:3:1: stream.x: expected its steps")));
  EXPECT_THAT(problems_in("[stream.x]\nsources = [\"a\"]\nsteps = [\"filelog\"]\n"),
              ElementsAre("millrace.toml:3:10: stream.x.steps[0]: expected a table with operator = "
                          "\"NAME\""));
  EXPECT_THAT(problems_in("[stream.x]\nsources = [\"a\"]\n[[stream.x.steps]]\n"
                          "operator = \"filelog\"\nsync = \"never\"\n"),
              ElementsAre("millrace.toml:5:8: stream.x.steps[0].sync: expected one of \"none\", "
                          "\"always\", found text \"never\""));
}

// What makes no sense is told at the key that says it.
TEST_F(StreamTablesTest, WhatMakesNoSense) {
  const std::string steps = "[[stream.x.steps]]\noperator = \"filelog\"\n";
  const auto first_problem = [&](const std::string& lines) {
    const auto all = problems_in("[stream.x]\n" + lines + steps);
    return all.empty() ? std::string() : all.front();
  };
  EXPECT_EQ(first_problem("sources = [\"a\"]\n"), "");
  EXPECT_THAT(first_problem("sources = [\"a\"]\nguarantee = \"exactly-once\"\n"),
              StartsWith("millrace.toml:3:13: stream.x.guarantee: exactly-once comes with "
                         "transactions"));
  EXPECT_THAT(first_problem("sources = [\"a\", \"a\"]\n"),
              StartsWith("millrace.toml:2:11: stream.x.sources: \"a\" stands twice"));
  EXPECT_THAT(first_problem("sources = [\"a\"]\nsink = \"a\"\n"),
              StartsWith("millrace.toml:3:8: stream.x.sink: \"a\" is a source as well"));
  EXPECT_THAT(first_problem("sources = [\"a\"]\nsink = \"b c\"\n"),
              StartsWith("millrace.toml:3:8: stream.x.sink: \"b c\" is no name of a topic"));
  EXPECT_THAT(
      first_problem("sources = [\"a\"]\nsink = \"__stream_x_changelog\"\n"),
      StartsWith("millrace.toml:3:8: stream.x.sink: \"__stream_x_changelog\" keeps the state"));
  EXPECT_THAT(
      first_problem("sources = [\"a\"]\nsink = \"__consumer_offsets\"\n"),
      StartsWith("millrace.toml:3:8: stream.x.sink: \"__consumer_offsets\" is the broker's own"));
  EXPECT_THAT(first_problem("sources = [\"a\"]\non-error = \"dead-letter\"\n"),
              StartsWith("millrace.toml:1:9: stream.x.dead-letter: on-error"));
  EXPECT_THAT(first_problem("sources = [\"a\"]\ndead-letter = \"d\"\n"),
              StartsWith("millrace.toml:3:15: stream.x.dead-letter: goes with on-error"));
  EXPECT_THAT(
      first_problem("sources = [\"a\"]\n" + steps),
      StartsWith("millrace.toml:6:12: stream.x.steps[1].operator: a step before it is called "
                 "filelog as well"));
  EXPECT_THAT(
      problems_in("[stream.\"a b\"]\nsources = [\"a\"]\nsteps = [{operator = \"filelog\"}]"),
      ElementsAre(StartsWith("millrace.toml:1:9: stream.\"a b\".name: \"a b\" is no name")));
}

}  // namespace
}  // namespace millrace::kernel
