#include <array>

#include "broker_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::seconds;

class TopicsTest : public BrokerTest {
 protected:
  MetadataAnswer metadata(std::optional<std::vector<TopicName>> topics, bool auto_create = false) {
    const MetadataRequest request{.topics = std::move(topics), .auto_create = auto_create};
    auto answer = on_shard(1, [&] { return broker_->metadata(session(1), request); });
    EXPECT_TRUE(answer) << to_string(answer.error());
    return *std::move(answer);
  }
  TopicDeleted remove(TopicName topic) {
    const std::vector<TopicName> topics{std::move(topic)};
    auto deleted =
        on_shard(0, [&] { return broker_->admin().delete_topics(session(0), topics, seconds(1)); });
    EXPECT_TRUE(deleted) << to_string(deleted.error());
    return deleted->at(0);
  }
};

TEST_F(TopicsTest, ANewTopicIsKnownOnEveryShardWhenItsCreationIsAnswered) {
  create("orders", 3);
  const auto answer = metadata(std::nullopt);
  ASSERT_EQ(answer.topics.size(), 1u);
  EXPECT_EQ(answer.topics[0].partitions.size(), 3u);
  EXPECT_FALSE(answer.topics[0].topic.id.is_none());
  ASSERT_EQ(answer.brokers.size(), 1u);
  EXPECT_EQ(answer.brokers[0].id, 1);
  EXPECT_EQ(answer.brokers[0].address, (Address{"b1", 9092}));
  EXPECT_EQ(answer.controller_id, 1);
  EXPECT_FALSE(answer.cluster_id.empty());
}

TEST_F(TopicsTest, TopicsAndTheClustersIdOutliveARestart) {
  create("orders", 3);
  const auto before = metadata(std::nullopt);
  restart();
  const auto after = metadata(std::nullopt);
  ASSERT_EQ(after.topics.size(), 1u);
  EXPECT_EQ(after.topics[0].topic.id, before.topics[0].topic.id);
  EXPECT_EQ(after.cluster_id, before.cluster_id);
}

TEST_F(TopicsTest, AskedForByNameOrId) {
  create("orders", 1);
  const auto id = metadata(std::nullopt).topics[0].topic.id;
  Uuid other = id;
  other.bytes[3] ^= 1;
  const auto answer = metadata(std::vector<TopicName>{
      {"", id}, {"", other}, {"nowhere", {}}, {"bad name", {}}, {"orders", {}}});
  ASSERT_EQ(answer.topics.size(), 5u);
  EXPECT_EQ(answer.topics[0].topic.name, "orders");
  EXPECT_EQ(answer.topics[1].error, ErrorCode::unknown_topic_id);
  EXPECT_EQ(answer.topics[2].error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(answer.topics[3].error, ErrorCode::invalid_topic_exception);
  EXPECT_EQ(answer.topics[4].topic.id, id);
}

TEST_F(TopicsTest, CreatedOnDemandOnceForManyWhoAsk) {
  const std::vector<TopicName> names{{"demand", {}}};
  std::vector<Result<MetadataAnswer>> answers;
  const auto ask = [this, &names, &answers](std::size_t shard) -> Task<> {
    const MetadataRequest request{.topics = names, .auto_create = true};
    answers.push_back(co_await broker_->metadata(session(shard), request));
    co_return {};
  };
  for (const std::size_t shard : {0, 1, 0, 1}) {
    auto& home = *node_.shards()[shard];
    home.post([&home, &ask, shard] { spawn(home, ask(shard), "ask"); });
  }
  ASSERT_TRUE(world_.run_until([&] { return answers.size() == 4; }, seconds(5)));
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->topics[0].error, ErrorCode::none);
    EXPECT_EQ(answer->topics[0].topic.id, answers[0]->topics[0].topic.id);
  }
}

TEST_F(TopicsTest, AChangeThatMeetsTheEndOfTheBrokerIsDoneOrRefused) {
  std::vector<Result<std::vector<TopicCreated>>> answers;
  const auto ask = [this, &answers]() -> Task<> {
    NewTopic wanted;
    wanted.name = "late" + std::to_string(answers.size());
    CreateTopicsRequest request{.topics = {wanted}, .timeout = seconds(30), .validate_only = false};
    answers.push_back(co_await broker_->admin().create_topics(session(0), std::move(request)));
    co_return {};
  };
  for (std::size_t round = 0; round < 4; ++round) {
    auto& home = *node_.shards()[0];
    home.post([&home, &ask] { spawn(home, ask(), "ask"); });
    world_.run_for(std::chrono::microseconds(50 * round));
    restart();
    ASSERT_EQ(answers.size(), round + 1);
    ASSERT_TRUE(answers.back());
    const bool created = answers.back()->at(0).error == ErrorCode::none;
    const auto topics = metadata(std::nullopt).topics;
    const auto known = std::ranges::any_of(topics, [&](const TopicInfo& topic) {
      return topic.topic.name == answers.back()->at(0).name;
    });
    EXPECT_EQ(known, created);
  }
}

// Whoever has asked may be gone by then: nothing waits for his answer, and nothing of it may be
// left when the broker goes, however far it had come.
TEST_F(TopicsTest, CreatedOnDemandForNobodyWhileTheBrokerEnds) {
  constexpr std::size_t steps_max = 90;
  for (std::size_t most = 1; most < steps_max; most += 3) {
    std::array<CancelScope, 2> scopes;
    std::size_t begun = 0;
    const auto ask = [&](std::size_t shard, std::vector<TopicName> names) -> Task<> {
      MetadataRequest request{.topics = std::move(names), .auto_create = true};
      ++begun;
      static_cast<void>(co_await broker_->metadata(session(shard), std::move(request)));
      co_return {};
    };
    const auto name = "demand" + std::to_string(most);
    for (const std::size_t at : {0, 1, 2, 3, 4}) {
      const auto shard = at % 2;
      std::vector<TopicName> names{{at < 2 ? name + "a" : name, {}}};
      auto& home = *node_.shards()[shard];
      home.post([&, shard, names = std::move(names)] {
        spawn(home, ask(shard, names), "ask", &scopes[shard]);
      });
    }
    std::size_t steps = 0;
    world_.run_until([&] { return begun == 5 && ++steps > most; }, seconds(1));
    ASSERT_EQ(begun, 5);
    for (const std::size_t shard : {0, 1}) {
      auto& home = *node_.shards()[shard];
      home.post([&scopes, shard] { scopes[shard].cancel(); });
    }
    restart();
  }
}

TEST_F(TopicsTest, NotCreatedOnDemandUnlessWanted) {
  const std::vector<TopicName> names{{"demand", {}}};
  EXPECT_EQ(metadata(names).topics[0].error, ErrorCode::unknown_topic_or_partition);
  defaults_["auto.create.topics.enable"] = "false";
  restart();
  EXPECT_EQ(metadata(names, true).topics[0].error, ErrorCode::unknown_topic_or_partition);
}

TEST_F(TopicsTest, ADeletedTopicIsGoneAndItsNameIsFree) {
  create("orders", 2);
  const auto id = metadata(std::nullopt).topics[0].topic.id;
  ASSERT_TRUE(produce(0, produce_request("orders", {0, 1}, "old")));
  EXPECT_EQ(remove({"orders", {}}).error, ErrorCode::none);
  EXPECT_TRUE(metadata(std::nullopt).topics.empty());
  EXPECT_EQ(remove({"orders", {}}).error, ErrorCode::unknown_topic_or_partition);
  EXPECT_EQ(remove({"", id}).error, ErrorCode::unknown_topic_id);

  create("orders", 1);
  EXPECT_NE(metadata(std::nullopt).topics[0].topic.id, id);
  const auto fetched = fetch(0, fetch_request("orders", {{.partition = 0, .from = Offset{0}}}));
  ASSERT_TRUE(fetched);
  EXPECT_TRUE(fetched->topics[0].partitions[0].records.empty());
}

TEST_F(TopicsTest, DeletionCanBeForbidden) {
  defaults_["delete.topic.enable"] = "false";
  restart();
  create("orders", 1);
  EXPECT_EQ(remove({"orders", {}}).error, ErrorCode::topic_deletion_disabled);
  EXPECT_EQ(metadata(std::nullopt).topics.size(), 1u);
}

TEST_F(TopicsTest, ValidateOnlyMakesNothing) {
  NewTopic wanted;
  wanted.name = "orders";
  wanted.partitions = 2;
  const CreateTopicsRequest request{
      .topics = {wanted}, .timeout = seconds(30), .validate_only = true};
  const auto created =
      on_shard(0, [&] { return broker_->admin().create_topics(session(0), request); });
  ASSERT_TRUE(created);
  EXPECT_EQ(created->at(0).error, ErrorCode::none);
  EXPECT_EQ(created->at(0).partitions, 2);
  EXPECT_TRUE(metadata(std::nullopt).topics.empty());
}

TEST_F(TopicsTest, ARequestForTooManyPartitionsIsRefusedAsAWhole) {
  CreateTopicsRequest request;
  request.timeout = seconds(1);
  request.topics = {{.name = "a", .partitions = 6000}, {.name = "b", .partitions = 4001}};
  const auto answers =
      on_shard(0, [&] { return broker_->admin().create_topics(session(0), request); });
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 2u);
  for (const auto& answer : *answers) EXPECT_EQ(answer.error, ErrorCode::policy_violation);
}

TEST_F(TopicsTest, TopicsOfOneRequestAreMadeAndDeletedTogetherAndAnsweredInItsOrder) {
  create("there", 1);
  CreateTopicsRequest request{.topics = {}, .timeout = seconds(30), .validate_only = false};
  std::vector<TopicName> names;
  for (int n = 0; n < 250; ++n) {
    auto name = "t" + std::to_string(n);
    if (n == 7) name = "there";
    if (n == 99) name = "t98";
    if (n == 200) name = "not/allowed";
    names.push_back({name, {}});
    request.topics.push_back({.name = std::move(name)});
  }
  auto before = coordination().commits;
  const auto made =
      on_shard(0, [&] { return broker_->admin().create_topics(session(0), request); });
  ASSERT_TRUE(made) << to_string(made.error());
  ASSERT_EQ(made->size(), 250);
  for (std::size_t n = 0; n < 250; ++n) {
    EXPECT_EQ(made->at(n).name, names[n].name);
    const auto expected = n == 200            ? ErrorCode::invalid_topic_exception
                          : n == 7 || n == 99 ? ErrorCode::topic_already_exists
                                              : ErrorCode::none;
    EXPECT_EQ(made->at(n).error, expected) << names[n].name;
  }
  EXPECT_EQ(metadata(std::nullopt).topics.size(), 248);
  EXPECT_LE(coordination().commits - before, 5);

  before = coordination().commits;
  const auto gone =
      on_shard(0, [&] { return broker_->admin().delete_topics(session(0), names, seconds(30)); });
  ASSERT_TRUE(gone) << to_string(gone.error());
  ASSERT_EQ(gone->size(), 250);
  for (std::size_t n = 0; n < 250; ++n) {
    EXPECT_EQ(gone->at(n).topic.name, names[n].name);
    const auto expected = n == 200  ? ErrorCode::invalid_topic_exception
                          : n == 99 ? ErrorCode::unknown_topic_or_partition
                                    : ErrorCode::none;
    EXPECT_EQ(gone->at(n).error, expected) << names[n].name;
  }
  EXPECT_TRUE(metadata(std::nullopt).topics.empty());
  EXPECT_LE(coordination().commits - before, 10);
}

// As in Kafka: what does not come in time goes on.
TEST_F(TopicsTest, AChangeThatTakesTooLongIsAnsweredAndDone) {
  CreateTopicsRequest request{.topics = {}, .timeout = {}, .validate_only = false};
  request.topics = {{.name = "a"}, {.name = "b"}};
  const auto created =
      on_shard(0, [&] { return broker_->admin().create_topics(session(0), request); });
  ASSERT_TRUE(created) << to_string(created.error());
  ASSERT_EQ(created->size(), 2u);
  EXPECT_EQ(created->at(1).name, "b");
  EXPECT_EQ(created->at(1).error, ErrorCode::request_timed_out);
  const auto topics = [this] { return metadata(std::nullopt).topics.size(); };
  ASSERT_TRUE(world_.run_until([&] { return topics() == 2; }, seconds(5)));

  const std::vector<TopicName> names{{"a", {}}, {"b", {}}};
  const auto deleted =
      on_shard(0, [&] { return broker_->admin().delete_topics(session(0), names, Duration{}); });
  ASSERT_TRUE(deleted) << to_string(deleted.error());
  EXPECT_EQ(deleted->at(1).error, ErrorCode::request_timed_out);
  ASSERT_TRUE(world_.run_until([&] { return topics() == 0; }, seconds(5)));
}

TEST_F(TopicsTest, ACreatedTopicTellsItsSettings) {
  NewTopic wanted;
  wanted.name = "orders";
  wanted.configs = {{"retention.ms", "1234"}};
  const auto created = create(wanted);
  ASSERT_EQ(created.size(), 1u);
  ASSERT_NE(created[0].configs, nullptr);
  const auto& configs = *created[0].configs;
  const auto found = std::ranges::find(configs, "retention.ms", &ConfigEntry::name);
  ASSERT_NE(found, configs.end());
  EXPECT_EQ(found->value, "1234");
}

TEST_F(TopicsTest, AThousandTopicsWithoutSettingsOfTheirOwnTellOneList) {
  CreateTopicsRequest request{
      .topics = {}, .timeout = std::chrono::seconds(60), .validate_only = true};
  for (int n = 0; n < 1000; ++n) request.topics.push_back({.name = "t" + std::to_string(n)});
  const auto answers =
      on_shard(0, [&] { return broker_->admin().create_topics(session(0), request); });
  ASSERT_TRUE(answers);
  for (const auto& answer : *answers) EXPECT_EQ(answer.configs, answers->front().configs);
  for (const auto& config : *answers->front().configs) {
    EXPECT_TRUE(config.synonyms.empty() && config.documentation.empty()) << config.name;
  }
}

}  // namespace
}  // namespace millrace::kernel
