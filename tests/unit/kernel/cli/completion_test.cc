#include "kernel/cli/completion.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/cli/completion_values.h"
#include "kernel/cli/program.h"

namespace millrace::kernel::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

struct Asked {
  ValueKind kind;
  TypedWords typed;
};

// The tool, with a cluster that has two topics and a group.
class CompletionTest : public testing::Test {
 protected:
  std::vector<std::string> words_after(const std::vector<std::string>& typed) {
    asked_.clear();
    const auto completions =
        complete(*program_, typed, [this](ValueKind kind, const TypedWords& words, auto) {
          asked_.push_back({kind, words});
          if (kind == ValueKind::topics) return std::vector<Candidate>{{"orders"}, {"payments"}};
          if (kind == ValueKind::groups) return std::vector<Candidate>{{"readers of orders"}};
          return std::vector<Candidate>();
        });
    names_ = completions.names;
    std::vector<std::string> words;
    for (const auto& candidate : completions.candidates) words.push_back(candidate.value);
    return words;
  }

  Context context_;
  Action action_;
  std::unique_ptr<CLI::App> program_ = make_program(context_, action_);
  std::vector<Asked> asked_;
  ValueKind names_ = ValueKind::none;
};

TEST_F(CompletionTest, VerbsByTheirBeginning) {
  EXPECT_THAT(words_after({"to"}), ElementsAre("topic"));
  EXPECT_THAT(words_after({"topic", "des"}), ElementsAre("describe"));
  EXPECT_THAT(words_after({""}), IsSupersetOf({"topic", "group", "produce", "plugin"}));
  EXPECT_THAT(words_after({"nonsense", ""}), IsSupersetOf({"topic"}));
  EXPECT_THAT(words_after({}), IsEmpty());
}

TEST_F(CompletionTest, OptionsOfTheVerbAndOfThoseAroundIt) {
  EXPECT_THAT(words_after({"topic", "create", "--p"}), ElementsAre("--partitions"));
  EXPECT_THAT(words_after({"topic", "create", "--"}), IsSupersetOf({"--config", "--bootstrap"}));
  EXPECT_THAT(words_after({"config", "set", "--"}), IsSupersetOf({"--topic", "--unset"}));
  // Where nothing else is left to say.
  EXPECT_THAT(words_after({"topic", "create", "orders", ""}), Contains("--partitions"));
}

TEST_F(CompletionTest, AnOptionThatIsThereIsNotOfferedAgainUnlessItRepeats) {
  const auto words =
      words_after({"topic", "create", "t", "--partitions", "3", "--config", "a=b", "--"});
  EXPECT_THAT(words, Not(Contains("--partitions")));
  EXPECT_THAT(words, Contains("--config"));
}

TEST_F(CompletionTest, TopicsAndGroupsAreAskedForWhereTheyStand) {
  EXPECT_THAT(words_after({"topic", "describe", ""}), ElementsAre("orders", "payments"));
  EXPECT_THAT(words_after({"consume", "--follow", "pay"}), ElementsAre("payments"));
  EXPECT_THAT(words_after({"config", "get", "--topic", "o"}), ElementsAre("orders"));
  EXPECT_THAT(words_after({"group", "reset", ""}), ElementsAre("readers of orders"));
  // A new one is nobody's.
  EXPECT_THAT(words_after({"topic", "create", "o"}), IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(CompletionTest, TheBrokerIsTheOneThatIsTyped) {
  for (const auto& typed :
       std::vector<std::vector<std::string>>{{"-b", "host:1", "topic", "describe", ""},
                                             {"-bhost:1", "topic", "describe", ""},
                                             {"topic", "describe", "--bootstrap", "host:1", ""},
                                             {"--bootstrap=host:1", "topic", "describe", ""}}) {
    EXPECT_THAT(words_after(typed), ElementsAre("orders", "payments"));
    ASSERT_EQ(asked_.size(), 1U);
    EXPECT_EQ(asked_.front().typed.option("--bootstrap"), "host:1");
  }
}

TEST_F(CompletionTest, ValuesThatAreKnown) {
  EXPECT_THAT(words_after({"-o", ""}), ElementsAre("table", "json"));
  EXPECT_THAT(words_after({"topic", "list", "--output=j"}), ElementsAre("--output=json"));
  EXPECT_THAT(words_after({"produce", "t", "--compression", "l"}), ElementsAre("lz4"));
  EXPECT_THAT(words_after({"-b", ""}), IsEmpty());
}

TEST_F(CompletionTest, FilesAndFoldersAreTheShells) {
  EXPECT_THAT(words_after({"plugin", "--path", ""}), IsEmpty());
  EXPECT_EQ(names_, ValueKind::folders);
  EXPECT_THAT(words_after({"stream", "replace", "words", "count", "/opt"}), IsEmpty());
  EXPECT_EQ(names_, ValueKind::files);
  words_after({"topic", ""});
  EXPECT_EQ(names_, ValueKind::none);
}

TEST_F(CompletionTest, AfterTwoDashesWordsAreNoOptions) {
  EXPECT_THAT(words_after({"topic", "describe", "--", ""}), ElementsAre("orders", "payments"));
  EXPECT_THAT(words_after({"topic", "describe", "--", "-"}), IsEmpty());
}

// `app`, or one of those below it.
bool has_argument(const CLI::App& app, const std::string& name) {
  if (app.get_option_no_throw(name) != nullptr) return true;
  return std::ranges::any_of(app.get_subcommands([](const CLI::App*) { return true; }),
                             [&name](const CLI::App* verb) { return has_argument(*verb, name); });
}

TEST_F(CompletionTest, EachRuleIsOfAnArgumentThatThereIs) {
  for (const auto& rule : argument_rules()) {
    const CLI::App* verb = program_.get();
    std::istringstream path{std::string(rule.verb)};
    for (std::string name; path >> name;) verb = verb->get_subcommand(name);
    EXPECT_TRUE(has_argument(*verb, std::string(rule.argument)))
        << rule.verb << ' ' << rule.argument;
  }
}

// --- What is known without a broker ---

std::vector<std::string> known(ValueKind kind, const TypedWords& typed = {},
                               std::string_view prefix = "") {
  std::vector<std::string> values;
  for (const auto& candidate : known_values(kind, typed, prefix)) values.push_back(candidate.value);
  return values;
}

TEST(KnownValuesTest, KeysOfTheConfigurationAndKafkasNames) {
  // No plugin is loaded that has nothing to do with what is typed.
  EXPECT_THAT(known(ValueKind::config_keys, {}, "broker."),
              IsSupersetOf({"broker.data", "retention.ms", "num.partitions"}));
  EXPECT_THAT(known(ValueKind::config_keys, {}, "storage.o"), Contains("storage.open_files_max"));
  EXPECT_THAT(known(ValueKind::daemon_settings, {}, "broker.d"),
              IsSupersetOf({"broker.data=", "defaults.\"num.partitions\"="}));
  EXPECT_THAT(known(ValueKind::plugins, {}, "compression/"),
              UnorderedElementsAre("compression/gzip", "compression/lz4", "compression/snappy",
                                   "compression/zstd"));
}

TEST(KnownValuesTest, SettingsOfWhatTheCommandNames) {
  const TypedWords topic{.options = {{"--topic", {"orders"}}}, .positionals = {}};
  EXPECT_THAT(known(ValueKind::setting_values, topic), Contains("retention.ms="));
  EXPECT_THAT(known(ValueKind::setting_values, topic), Not(Contains("num.partitions=")));
  const TypedWords brokers{.options = {{"--broker", {"1"}}}, .positionals = {}};
  EXPECT_THAT(known(ValueKind::settings, brokers), Contains("num.partitions"));
  const TypedWords group{.options = {{"--group", {"g"}}}, .positionals = {}};
  EXPECT_THAT(known(ValueKind::settings, group), Contains("consumer.session.timeout.ms"));
}

TEST(KnownValuesTest, ValuesOfASettingThatHasFew) {
  EXPECT_THAT(known(ValueKind::topic_settings, {}, "message.timestamp.type=Log"),
              UnorderedElementsAre("message.timestamp.type=CreateTime",
                                   "message.timestamp.type=LogAppendTime"));
  EXPECT_THAT(known(ValueKind::topic_settings, {}, "retention.ms="), IsEmpty());
  EXPECT_THAT(known(ValueKind::topic_settings, {}, "nonsense="), IsEmpty());
}

TEST(KnownValuesTest, NothingWhereNobodyAnswers) {
  const TypedWords nobody{.options = {{"--bootstrap", {"127.0.0.1:1"}}}, .positionals = {}};
  EXPECT_THAT(known(ValueKind::topics, nobody), IsEmpty());
  EXPECT_THAT(known(ValueKind::groups, nobody), IsEmpty());
}

}  // namespace
}  // namespace millrace::kernel::cli
