// The service: requests reach the coordinator of their group, and what the runtime refuses is the
// answer's error, wherever an answer has it.
#include "plugins/operators/consumer_groups/service.h"

#include <functional>

#include <millrace/testing/sim_environment.h>

#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

/// Answers at once: what the coordinator says, or an error of the runtime.
class FakeAggregates final : public Aggregates {
 public:
  explicit FakeAggregates(AggregateDriver& driver) : driver_(driver) {}

  Call<AggregateAnswer> command(std::string_view aggregate, std::string_view key,
                                std::unique_ptr<Message> body) override {
    EXPECT_EQ(aggregate, "consumer_groups");
    keys.emplace_back(key);
    auto [resolver, pending] = make_pending<AggregateAnswer>();
    if (error != ErrorCode::none) {
      resolver.resolve(AggregateAnswer{error, "as the test says", nullptr});
    } else {
      const auto token = driver_.send(key, std::move(body));
      waiting_.push_back({token, std::move(resolver)});
      settle();
    }
    return {Pending<>::ready({}), std::move(pending)};
  }
  Task<AggregateAnswer> query(std::string_view, std::string_view,
                              std::unique_ptr<Message>) override {
    co_return AggregateAnswer{ErrorCode::unknown_server_error, "", nullptr};
  }
  Task<std::vector<AggregateAnswer>> query_all(
      std::string_view, std::function<std::unique_ptr<Message>()> make) override {
    std::vector<AggregateAnswer> answers;
    auto mine = driver_.query({}, *make());
    answers.push_back({ErrorCode::none, "", std::move(*mine)});
    answers.push_back({ErrorCode::not_coordinator, "led elsewhere", nullptr});
    if (error != ErrorCode::none) answers.push_back({error, "as the test says", nullptr});
    co_return answers;
  }
  Task<AggregateHome> home(std::string_view, std::string_view key) override {
    keys.emplace_back(key);
    co_return AggregateHome{error, "as the test says", 7};
  }

  /// Lets out what the coordinator has answered.
  void settle() {
    for (auto& [token, resolver] : waiting_) {
      const auto* answer = driver_.answer(token);
      if (!answer || !resolver) continue;
      // The driver keeps the message: what is answered is a copy of what the tests look at.
      const auto* joined = driver_.answer_as<Reply<JoinGroupAnswer>>(token);
      const auto* committed = driver_.answer_as<Reply<OffsetCommitAnswer>>(token);
      const auto* offsets = driver_.answer_as<Reply<GroupOffsets>>(token);
      const auto* described = driver_.answer_as<Reply<GroupDescribed>>(token);
      const auto* consumers = driver_.answer_as<Reply<ConsumerGroupDescribed>>(token);
      AggregateAnswer out;
      if (joined) out.message = std::make_unique<Reply<JoinGroupAnswer>>(*joined);
      if (committed) out.message = std::make_unique<Reply<OffsetCommitAnswer>>(*committed);
      if (offsets) out.message = std::make_unique<Reply<GroupOffsets>>(*offsets);
      if (described) out.message = std::make_unique<Reply<GroupDescribed>>(*described);
      if (consumers) out.message = std::make_unique<Reply<ConsumerGroupDescribed>>(*consumers);
      resolver.resolve(std::move(out));
    }
  }

  ErrorCode error = ErrorCode::none;
  std::vector<std::string> keys;

 private:
  struct Waiting {
    ReplyTo token;
    Resolver<AggregateAnswer> resolver;
  };
  AggregateDriver& driver_;
  std::vector<Waiting> waiting_;
};

class ServiceTest : public Bench {
 public:
  ServiceTest() { service.connect(aggregates); }

  /// What a call is answered, on a shard.
  template <class F>
  auto run(F make) {
    auto result = world.run(node.control(), std::move(make));
    EXPECT_TRUE(result);
    return std::move(*result);
  }
  template <class Answer>
  Answer done(std::function<Call<Answer>()> call) {
    auto body = [](std::function<Call<Answer>()> begin) -> Task<Answer> {
      auto [dispatched, answered] = begin();
      MR_CO_CHECK(co_await dispatched);
      co_return co_await answered;
    };
    return run([&] { return body(call); });
  }

  JoinGroupAnswer join(JoinGroupRequest request) {
    return done<JoinGroupAnswer>([&] { return service.join(client, request); });
  }
  OffsetCommitAnswer commit_to(std::string group) {
    OffsetCommitRequest request{.group = std::move(group)};
    request.topics = {{{.name = "orders"}, {{.partition = 0, .offset = {1}}, {.partition = 1}}}};
    return done<OffsetCommitAnswer>([&] { return service.commit(client, request); });
  }

  const std::string too_long = std::string(40'000, 'g');
  const ClientInfo client{.client_id = "app", .peer = {"10.1.2.3", 4711}};
  millrace::testing::SimWorld world{1};
  millrace::testing::SimEnvironment& node = world.add_node("b1");
  FakeAggregates aggregates{driver};
  Service service{node};
};

TEST_F(ServiceTest, ARequestGoesToTheCoordinatorOfItsGroup) {
  const auto answer = commit_to("s");
  EXPECT_EQ(answer.at(0).partitions.at(1).error, ErrorCode::none);
  EXPECT_EQ(aggregates.keys, std::vector<std::string>{"s"});
  EXPECT_EQ(offset_of("s"), 1);
}

TEST_F(ServiceTest, MembersAreShownWithTheAddressTheyCameFrom) {
  JoinGroupRequest request{.group = "g",
                           .session_timeout = 10s,
                           .rebalance_timeout = 10s,
                           .instance_id = "one",
                           .protocol_type = "consumer",
                           .protocols = {{"range", {}}}};
  auto body = [](Service& to, const ClientInfo& from, JoinGroupRequest join) -> Task<> {
    auto call = to.join(from, std::move(join));
    co_return co_await call.dispatched;
  };
  EXPECT_TRUE(world.run(node.control(), [&] { return body(service, client, request); }));
  const auto described = describe("g");
  EXPECT_EQ(described.members.at(0).client_id, "app");
  EXPECT_EQ(described.members.at(0).client_host, "/10.1.2.3");
}

TEST_F(ServiceTest, WhatTheRuntimeRefusesIsTheAnswersError) {
  aggregates.error = ErrorCode::coordinator_load_in_progress;
  const auto committed = commit_to("s");
  ASSERT_EQ(committed.at(0).partitions.size(), 2U);
  EXPECT_EQ(committed[0].topic.name, "orders");
  EXPECT_EQ(committed[0].partitions[1].partition, 1);
  EXPECT_EQ(committed[0].partitions[1].error, aggregates.error);
  EXPECT_EQ(join({.group = "g", .member_id = "m"}).error, aggregates.error);
  EXPECT_EQ(join({.group = "g", .member_id = "m"}).member_id, "m");
  EXPECT_EQ(run([&] { return service.heartbeat(GroupHeartbeat{.group = "g"}); }), aggregates.error);
  EXPECT_EQ(run([&] { return service.leave({.group = "g"}); }).error, aggregates.error);
  const auto offsets =
      run([&] { return service.offsets({{.group = "g"}, {.group = "h"}}, false); });
  ASSERT_EQ(offsets.size(), 2U);
  EXPECT_EQ(offsets[1].group, "h");
  EXPECT_EQ(offsets[1].error, aggregates.error);
  const auto described = run([&] { return service.describe({"g"}); });
  EXPECT_EQ(described.at(0).group, "g");
  EXPECT_EQ(described.at(0).error, aggregates.error);
  EXPECT_EQ(described.at(0).message, "as the test says");
  EXPECT_EQ(run([&] { return service.remove({"g"}); }).at(0).error, aggregates.error);
  EXPECT_EQ(run([&] { return service.list({}); }).error, aggregates.error);
  EXPECT_EQ(run([&] { return service.coordinator("g"); }).error, aggregates.error);
}

TEST_F(ServiceTest, GroupsOfOtherBrokersAreListedThere) {
  (void)commit_to("s");
  const auto listed = run([&] { return service.list({}); });
  EXPECT_EQ(listed.error, ErrorCode::none);
  ASSERT_EQ(listed.groups.size(), 1U);
  EXPECT_EQ(listed.groups[0].group, "s");
}

TEST_F(ServiceTest, AGroupMustHaveAName) {
  EXPECT_EQ(join({.group = ""}).error, ErrorCode::invalid_group_id);
  EXPECT_EQ(done<SyncGroupAnswer>([&] { return service.sync({.group = ""}); }).error,
            ErrorCode::invalid_group_id);
  EXPECT_EQ(run([&] { return service.heartbeat(GroupHeartbeat{}); }), ErrorCode::invalid_group_id);
  EXPECT_EQ(run([&] { return service.leave({}); }).error, ErrorCode::invalid_group_id);
  EXPECT_EQ(run([&] { return service.delete_offsets({}); }).error, ErrorCode::invalid_group_id);
  EXPECT_TRUE(aggregates.keys.empty());
  // But for offsets, as ever.
  EXPECT_EQ(commit_to("").at(0).partitions.at(0).error, ErrorCode::none);
  EXPECT_EQ(offset_of(""), 1);
}

TEST_F(ServiceTest, ANameThatNoRecordHasRoomForIsRefused) {
  EXPECT_EQ(commit_to(too_long).at(0).partitions.at(0).error, ErrorCode::invalid_group_id);
  EXPECT_EQ(join({.group = too_long}).error, ErrorCode::invalid_group_id);
  EXPECT_EQ(join({.group = "g", .instance_id = too_long}).error, ErrorCode::invalid_request);
  EXPECT_EQ(join({.group = "g", .protocols = {{too_long, {}}}}).error, ErrorCode::invalid_request);
  EXPECT_TRUE(aggregates.keys.empty());
  // Who only asks is told that there is none.
  EXPECT_EQ(run([&] { return service.describe({too_long}); }).at(0).error,
            ErrorCode::group_id_not_found);
}

TEST_F(ServiceTest, ALongNameIsNotSaidInFull) {
  const std::string name(32'767, 'g');
  const auto described = run([&] { return service.describe_consumer_groups({name}); });
  EXPECT_EQ(described.at(0).error, ErrorCode::group_id_not_found);
  EXPECT_EQ(described.at(0).group, name);
  EXPECT_LT(described.at(0).message.size(), 400U);
}

// As Java reads it: bytes that are not UTF-8 are one and the same character.
TEST_F(ServiceTest, ANameIsTextWhateverItsBytes) {
  EXPECT_EQ(commit_to("g\xff").at(0).partitions.at(0).error, ErrorCode::none);
  EXPECT_EQ(aggregates.keys, std::vector<std::string>{"g\xef\xbf\xbd"});
  EXPECT_EQ(commit_to("g\xfe").at(0).partitions.at(0).error, ErrorCode::none);
  EXPECT_EQ(aggregates.keys.at(0), aggregates.keys.at(1));
  EXPECT_EQ(offset_of("g\xef\xbf\xbd"), 1);
  EXPECT_EQ(commit_to("g\n").at(0).partitions.at(0).error, ErrorCode::none);
  EXPECT_EQ(aggregates.keys.at(2), "g\n");
  EXPECT_EQ(commit_to(std::string(20'000, '\xff')).at(0).partitions.at(0).error,
            ErrorCode::invalid_group_id)
      << "no record has room for it then";
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
