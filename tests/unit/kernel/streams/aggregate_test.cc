// Commands, questions and their answers; what is lost and what is not.
#include <algorithm>
#include <optional>

#include <gmock/gmock.h>

#include "../partition/test_storage.h"
#include "aggregate_fixture.h"
#include "kernel/streams/replay.h"

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(AggregateTest, DecidesAndIsAskedFromEveryShard) {
  for (const std::size_t shard : {0, 1}) {
    const auto name = std::to_string(shard);
    EXPECT_EQ(text_of(ask("a" + name, put("one"), shard)), "one");
    EXPECT_EQ(text_of(ask("b" + name, put("two"), shard)), "two");
  }
  for (const std::size_t shard : {0, 1}) {
    EXPECT_EQ(text_of(query("a0", shard)), "one");
    EXPECT_EQ(text_of(query("b1", shard)), "two");
    EXPECT_EQ(text_of(query("c", shard)), "UNKNOWN_TOPIC_OR_PARTITION");
  }
  EXPECT_EQ(script_.replayed, 0);
}

TEST_F(AggregateTest, MakesItsTopicWhenSomebodyFirstNeedsIt) {
  EXPECT_EQ(partition_at(partition_of("a")), nullptr);
  const auto home = on_shard(0, [this] { return router_->home("ledger", "a"); });
  ASSERT_TRUE(home);
  EXPECT_EQ(home->error, ErrorCode::none);
  EXPECT_EQ(home->broker, 1);
  EXPECT_NE(partition_at(partition_of("a")), nullptr);  // with one replica, as there is one broker
}

TEST_F(AggregateTest, ManyWhoNeedItsTopicAtOnceGetOne) {
  std::vector<Later> answers;
  for (int n = 0; n < 20; ++n) {
    answers.push_back(begin(std::to_string(n), put("x"), static_cast<std::size_t>(n % 2)));
  }
  for (const auto& answer : answers) {
    ASSERT_TRUE(comes(answer));
    EXPECT_EQ(text_of(**answer), "x");  // though the aggregate was still to be loaded
  }
}

TEST_F(AggregateTest, ATopicThatCannotBeMadeIsForTheLogAndNotForClients) {
  node_.files().limit_bytes(0);
  for (int n = 0; n < 20; ++n) {
    const auto answer = ask("a", put("x"));
    EXPECT_EQ(answer.error, ErrorCode::coordinator_not_available);
    EXPECT_EQ(answer.detail, "its topic __ledger cannot be made now; the broker's log says why");
  }
  const auto count = [this] {
    return std::ranges::count_if(log_.lines(), [](const std::string& line) {
      return line.contains("the topic of an aggregate cannot be made") &&
             line.contains("topic=__ledger") && line.contains("reason=");
    });
  };
  EXPECT_EQ(count(), 1);
  world_.run_for(seconds(10));
  ask("a", put("x"));
  EXPECT_EQ(count(), 2);
}

TEST_F(AggregateTest, AnswersAndQueriesWaitForTheHighWatermark) {
  ask("a", put("one"));
  const auto id = partition_of("a");
  hold(id, true);
  const auto answer = begin("a", put("two"));
  settle();
  const auto asked = begin_query("a", 1);
  world_.run_for(seconds(10));
  EXPECT_FALSE(answer->has_value());
  EXPECT_FALSE(asked->has_value());
  hold(id, false);
  ASSERT_TRUE(comes(answer));
  ASSERT_TRUE(comes(asked));
  EXPECT_EQ(text_of(**answer), "two");
  EXPECT_EQ(text_of(**asked), "two");
}

TEST_F(AggregateTest, AnAnswerWithoutEventsWaitsForThoseBeforeIt) {
  ask("a", put("one"));
  const auto id = partition_of("a");
  hold(id, true);
  const auto first = begin("a", put("two"));
  const auto second = begin("a", [](Ledger& ledger, Command& command, Context& context) {
    context.answer(command.reply_to, std::make_unique<Text>("saw " + ledger.texts["a"]));
  });
  settle();
  EXPECT_FALSE(second->has_value());
  hold(id, false);
  ASSERT_TRUE(comes(second));
  EXPECT_EQ(text_of(**second), "saw two");
}

TEST_F(AggregateTest, AFailedAppendLeavesTheStateAndTellsThoseWhoWereAnswered) {
  ask("a", put("one"));
  const auto partition = partition_at(partition_of("a"));
  auto config = partition->config();
  const auto before = config;
  config.min_insync_replicas = 2;
  partition->set_config(config);
  EXPECT_EQ(text_of(ask("a", put("two"))), "COORDINATOR_NOT_AVAILABLE");
  EXPECT_EQ(text_of(query("a")), "one");
  // Who was not answered goes on waiting.
  const auto parked = begin("a", wait());
  settle();
  ask("a", put("three"));
  EXPECT_FALSE(parked->has_value());
  partition->set_config(before);
  EXPECT_EQ(text_of(ask("a", put("four"))), "four");
  EXPECT_EQ(script_.loads, 4);  // of four partitions, each once
}

TEST_F(AggregateTest, AnEventThatIsTooLargeIsRefusedByItsName) {
  EXPECT_EQ(text_of(ask("a", put(std::string(2 << 20, 'x')))), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(text_of(ask("a", put("small"))), "small");
}

TEST_F(AggregateTest, EventsAreCompressedAsItsDeclarationSays) {
  const testing::MarkCodec codec(CompressionId::gzip);
  ask("a", put("plain"));
  declaration_.settings["compression.type"] = "gzip";
  factory_ = std::make_unique<LedgerFactory>(script_, declaration_);
  close();
  {
    AggregateRouter other(*broker_, {});
    const auto refused = other.add(*factory_, {"org.example.ledger"});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("no plugin of the codec gzip is loaded"));
  }
  auto& codecs = broker_->parts().codecs;
  codecs.add(codec);
  ASSERT_TRUE(world_.run(node_.control(), [&] { return broker_->use(codecs); }));
  reopen();
  EXPECT_EQ(text_of(ask("a", put("small"))), "small");
  const auto partition = partition_at(partition_of("a"));
  EXPECT_EQ(partition->config().compression_type, std::nullopt);  // "producer"
  const auto log = on_shard(
      broker_->partitions().owner_of("__ledger", partition->id().partition).shard().index(),
      [&] { return partition->read_own(Offset{0}, 1 << 20); });
  ASSERT_TRUE(log);
  const auto step = open_step(*log, Offset{0}, codecs);
  ASSERT_TRUE(step);
  ASSERT_EQ(step->batches.size(), 2U);
  EXPECT_EQ(step->batches[0].header.compression(), CompressionId::none);
  EXPECT_EQ(step->batches[1].header.compression(), CompressionId::gzip);
  reopen();
  EXPECT_EQ(text_of(query("a")), "small");
  close();  // before the codec goes
}

TEST_F(AggregateTest, AnswersLaterAndInAnotherCall) {
  const auto first = begin("a", wait(), 0);
  const auto second = begin("a", wait(), 1);
  settle();
  EXPECT_FALSE(first->has_value());
  ask("a", [](Ledger& ledger, Command& command, Context& context) {
    for (const auto to : ledger.waiting) context.answer(to, std::make_unique<Text>("now"));
    for (const auto to : ledger.waiting) context.answer(to, std::make_unique<Text>("twice"));
    context.answer(command.reply_to, nullptr);
  });
  ASSERT_TRUE(comes(first));
  ASSERT_TRUE(comes(second));
  EXPECT_EQ(text_of(**first), "now");
  EXPECT_EQ(text_of(**second), "now");
}

TEST_F(AggregateTest, WhoGivesUpIsForgotten) {
  for (const std::size_t shard : {0, 1}) {
    CancelScope scope;
    const auto parked = begin("a", wait(), shard, &scope);
    settle();
    scope.cancel();
    settle();
    EXPECT_FALSE(parked->has_value());
  }
  // Nobody hears it, and nothing happens.
  EXPECT_EQ(text_of(ask("a",
                        [](Ledger& ledger, Command& command, Context& context) {
                          for (const auto to : ledger.waiting) {
                            context.refuse(to, ErrorCode::invalid_request, "");
                          }
                          context.answer(command.reply_to, std::make_unique<Text>("done"));
                        })),
            "done");
}

TEST_F(AggregateTest, ALostPartitionSendsThoseWhoWaitElsewhere) {
  ask("a", put("one"));
  const auto parked = begin("a", wait(), 0);
  hold(partition_of("a"), true);
  const auto held = begin("a", put("two"), 1);
  settle();
  erase_topic(declaration_.topic);
  ASSERT_TRUE(comes(parked));
  ASSERT_TRUE(comes(held));
  EXPECT_EQ(text_of(**parked), "NOT_COORDINATOR");
  EXPECT_EQ(text_of(**held), "NOT_COORDINATOR");
  // Whoever comes then begins anew, and waits until the new partitions are loaded.
  EXPECT_EQ(text_of(ask("b", put("other"))), "other");
  EXPECT_EQ(text_of(query("a")), "UNKNOWN_TOPIC_OR_PARTITION");
}

TEST_F(AggregateTest, AnObjectThatThrowsIsLoadedAgainFromItsLog) {
  ask("a", put("one"));
  const auto parked = begin("a", wait());
  settle();
  const auto loads = script_.loads;
  EXPECT_EQ(text_of(ask("a",
                        [](Ledger&, Command& command, Context& context) {
                          context.emit(as_bytes(command.key), as_bytes("never"));
                          throw std::runtime_error("oops");
                        })),
            "UNKNOWN_SERVER_ERROR");
  ASSERT_TRUE(comes(parked));
  EXPECT_EQ(text_of(**parked), "COORDINATOR_NOT_AVAILABLE");
  world_.run_for(seconds(1));
  EXPECT_EQ(script_.loads, loads + 1);
  EXPECT_EQ(script_.replayed, 1);
  EXPECT_EQ(text_of(query("a")), "one");
}

TEST_F(AggregateTest, AnEventThatItMustNotFindKeepsItUnloadedUntilItIsMended) {
  ask("a", put("good"));
  script_.before_evolve = [](const RecordView& event) -> Result<> {
    if (as_text(*event.value) == "bad") return Error{Errc::corrupt, "bad"};
    return {};
  };
  EXPECT_EQ(text_of(ask("a", put("bad"))), "COORDINATOR_NOT_AVAILABLE");
  world_.run_for(seconds(100));
  const auto refused = ask("a", put("more"));
  EXPECT_EQ(text_of(refused), "COORDINATOR_NOT_AVAILABLE");
  EXPECT_THAT(refused.detail, HasSubstr("event at offset 1: bad"));
  script_.before_evolve = nullptr;
  world_.run_for(seconds(31));
  EXPECT_EQ(text_of(query("a")), "bad");
}

TEST_F(AggregateTest, IsNotAskedBeforeItIsLoaded) {
  for (int n = 0; n < 100; ++n) ask("a", put(std::to_string(n)));
  close();
  router_ = std::make_unique<AggregateRouter>(
      *broker_, OperatorSettings{.snapshot_events = 1'000'000, .snapshot_bytes = 1UL << 40});
  ASSERT_TRUE(router_->add(*factory_, {"org.example.ledger"}));
  const auto opened = world_.run(node_.control(), [this] { return router_->open(); });
  ASSERT_TRUE(opened);
  EXPECT_EQ(text_of(query("a")), "99");
  EXPECT_EQ(script_.replayed, 100);
}

TEST_F(AggregateTest, AsksEveryPartition) {
  for (const auto* key : {"a", "b", "c", "d"}) ask(key, put("x"));
  const auto answers = on_shard(1, [this] {
    return router_->query_all("ledger", [] { return std::make_unique<Text>(""); });
  });
  ASSERT_TRUE(answers);
  EXPECT_EQ(answers->size(), 4u);
}

TEST_F(AggregateTest, ReadsWhatOthersHaveWrittenToItsLogBeforeItDecides) {
  ask("a", put("one"));
  // A tool that mends.
  ClientInfo tool;
  tool.client_id = "__admin_client";
  const auto id = partition_of("a");
  auto by_tool = on_shard(0, [&]() -> Task<ProduceAnswer> {
    auto with_tool = broker_->open_session(tool);
    ProduceRequest request;
    request.timeout = seconds(30);
    auto& topic = request.topics.emplace_back();
    topic.topic.name = id.topic;
    BatchBuilder builder({});
    builder.add(node_.clock().wall(), as_bytes("a"), as_bytes("mended"));
    MR_CO_TRY(auto batch, std::move(builder).finish());
    topic.partitions.push_back({id.partition, std::move(batch)});
    auto call = broker_->produce(*with_tool, std::move(request));
    MR_CO_CHECK(co_await call.dispatched);
    co_return co_await call.done;
  });
  ASSERT_TRUE(by_tool);
  EXPECT_EQ(by_tool->topics[0].partitions[0].error, ErrorCode::none);
  EXPECT_EQ(text_of(ask("a",
                        [](Ledger& ledger, Command& command, Context& context) {
                          context.answer(command.reply_to,
                                         std::make_unique<Text>(ledger.texts["a"]));
                        })),
            "mended");
  EXPECT_EQ(text_of(ask("a", put("two"))), "two");
}

TEST_F(AggregateTest, OtherClientsDoNotWriteToItsTopic) {
  ask("a", put("one"));
  const auto refused = produce(0, produce_request(declaration_.topic, {0}, "x"));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->topics[0].partitions[0].error, ErrorCode::invalid_topic_exception);
  TrimRequest trim{.topics = {{declaration_.topic, {{0, Offset{0}}, {1, Offset{0}}}}},
                   .timeout = seconds(30)};
  const auto trimmed = on_shard(0, [&] { return broker_->admin().trim(session(0), trim); });
  ASSERT_TRUE(trimmed);
  ASSERT_EQ(trimmed->at(0).partitions.size(), 2u);
  EXPECT_EQ(trimmed->at(0).partitions[1].error, ErrorCode::invalid_topic_exception);
  const auto known = on_shard(0, [this] { return broker_->metadata(session(0), {}); });
  ASSERT_TRUE(known);
  ASSERT_EQ(known->topics.size(), 1u);
  EXPECT_TRUE(known->topics[0].internal);
}

TEST_F(AggregateTest, RefusesADeclarationThatIsTakenOrEmpty) {
  const auto add = [this](AggregateDeclaration declaration) {
    LedgerFactory other(script_, std::move(declaration));
    const auto added = router_->add(other, {"org.example.other"});
    return added ? std::string("added") : added.error().detail;
  };
  EXPECT_THAT(add(declaration_),
              HasSubstr("another of this name is offered by org.example.ledger"));
  EXPECT_THAT(add({.name = "other", .topic = "__ledger", .settings = {}}),
              HasSubstr("its topic __ledger is that of \"ledger\""));
  EXPECT_THAT(add({.name = "", .topic = "x", .settings = {}}), HasSubstr("no name"));
  EXPECT_THAT(add({.name = "x", .topic = "", .settings = {}}), HasSubstr("Topic name is invalid"));
  EXPECT_THAT(add({.name = "x", .topic = "y", .partitions = 0, .settings = {}}),
              HasSubstr("one partition"));
}

TEST_F(AggregateTest, KnowsTopicsAndSettingsAsTheyAreNow) {
  std::vector<std::string> seen;
  script_.cluster_changed = [&seen](Ledger&, Context& context) {
    seen.push_back(std::to_string(context.cluster().names().size()));
  };
  const auto look = [](Ledger&, Command& command, Context& context) {
    const auto* topic = context.cluster().find("orders");
    context.answer(command.reply_to,
                   std::make_unique<Text>((topic ? std::to_string(topic->partitions()) : "none") +
                                          " " + context.setting("group.max.session.timeout.ms") +
                                          " " + context.setting("log.retention.ms") +
                                          context.setting("no.such.setting")));
  };
  EXPECT_EQ(text_of(ask("a", look)), "none 1800000 ");
  seen.clear();
  create("orders", 3);
  settle();
  EXPECT_THAT(seen, ElementsAre("2", "2", "2", "2"));
  AlterConfigsRequest request;
  auto& change = request.alterations.emplace_back();
  change.resource = {ConfigResourceType::broker, "1"};
  change.changes.push_back({.name = "log.retention.ms", .value = "5000"});
  const auto altered = on_shard(0, [&] { return broker_->configs().alter(session(0), request); });
  ASSERT_TRUE(altered);
  ASSERT_EQ(altered->at(0).error, ErrorCode::none) << altered->at(0).message;
  EXPECT_EQ(text_of(ask("a", look)), "3 1800000 5000");
  settle();
  EXPECT_EQ(seen.size(), 4u);  // settings are no change of topics
}

}  // namespace
}  // namespace millrace::kernel
