#include "aggregate_fixture.h"

#include <utility>

namespace millrace::kernel {

namespace {

Task<> answer_into(Call<AggregateAnswer> call,
                   std::shared_ptr<std::optional<AggregateAnswer>> into) {
  MR_CO_CHECK(co_await call.dispatched);
  MR_CO_TRY(auto answer, co_await call.done);
  into->emplace(std::move(answer));
  co_return {};
}

Task<> query_into(Task<AggregateAnswer> asking,
                  std::shared_ptr<std::optional<AggregateAnswer>> into) {
  MR_CO_TRY(auto answer, co_await std::move(asking));
  into->emplace(std::move(answer));
  co_return {};
}

}  // namespace

AggregateTest::AggregateTest() {
  factory_ = std::make_unique<LedgerFactory>(script_, declaration_);
  reopen();
}

AggregateTest::~AggregateTest() { close(); }

void AggregateTest::close() {
  if (!router_) return;
  const auto closed = world_.run(node_.control(), [this] { return router_->close(); });
  EXPECT_TRUE(closed) << to_string(closed.error());
  settle();
  router_.reset();
}

void AggregateTest::reopen(OperatorSettings settings) {
  close();
  router_ = std::make_unique<AggregateRouter>(*broker_, settings);
  const auto added = router_->add(*factory_, {"org.example.ledger"});
  ASSERT_TRUE(added) << to_string(added.error());
  const auto opened = world_.run(node_.control(), [this] { return router_->open(); });
  ASSERT_TRUE(opened) << to_string(opened.error());
  settle();
}

AggregateTest::Later AggregateTest::begin(std::string key, Body body, std::size_t shard,
                                          CancelScope* scope) {
  auto answer = std::make_shared<std::optional<AggregateAnswer>>();
  auto& home = *node_.shards()[shard];
  home.post([this, &home, key = std::move(key), body = std::move(body), answer, scope]() mutable {
    auto call = router_->command("ledger", key, std::make_unique<Ask>(std::move(body)));
    spawn(home, answer_into(std::move(call), answer), "command", scope);
  });
  return answer;
}

AggregateTest::Later AggregateTest::begin_query(std::string key, std::size_t shard) {
  auto answer = std::make_shared<std::optional<AggregateAnswer>>();
  auto& home = *node_.shards()[shard];
  home.post([this, &home, key = std::move(key), answer]() mutable {
    auto asking = router_->query("ledger", key, std::make_unique<Text>(""));
    spawn(home, query_into(std::move(asking), answer), "query");
  });
  return answer;
}

bool AggregateTest::comes(const Later& answer, Duration limit) {
  return world_.run_until([&answer] { return answer->has_value(); }, limit);
}

AggregateAnswer AggregateTest::ask(std::string key, Body body, std::size_t shard) {
  const auto answer = begin(std::move(key), std::move(body), shard);
  EXPECT_TRUE(comes(answer));
  return *answer ? std::move(**answer) : AggregateAnswer{};
}

AggregateAnswer AggregateTest::query(std::string key, std::size_t shard) {
  const auto answer = begin_query(std::move(key), shard);
  EXPECT_TRUE(comes(answer));
  return *answer ? std::move(**answer) : AggregateAnswer{};
}

AggregateTest::Body AggregateTest::put(std::string text) {
  return [text](Ledger&, Command& command, Context& context) {
    context.emit(as_bytes(command.key), as_bytes(text));
    context.answer(command.reply_to, std::make_unique<Text>(text));
  };
}

AggregateTest::Body AggregateTest::wait() {
  return [](Ledger& ledger, Command& command, Context&) {
    ledger.waiting.push_back(command.reply_to);
  };
}

std::string AggregateTest::text_of(const AggregateAnswer& answer) {
  if (answer.error != ErrorCode::none) return std::string(name_of(answer.error));
  return answer.message ? static_cast<const Text&>(*answer.message).text : "no message";
}

TopicPartition AggregateTest::partition_of(std::string_view key) const {
  return {declaration_.topic, partition_of_key(key, declaration_.partitions)};
}

std::shared_ptr<Partition> AggregateTest::partition_at(const TopicPartition& id) {
  return broker_->partitions().owner_of(id.topic, id.partition).find(id.topic, id.partition);
}

void AggregateTest::hold(const TopicPartition& id, bool held) {
  const auto done =
      world_.run(node_.control(), [&] { return broker_->hold_high_watermark(id, held); });
  ASSERT_TRUE(done) << to_string(done.error());
}

void AggregateTest::erase_topic(const std::string& topic) {
  std::vector<TopicName> names(1);
  names.front().name = topic;
  const auto erased = on_shard(0, [&] {
    return broker_->admin().delete_topics(session(0), names, std::chrono::seconds(30));
  });
  ASSERT_TRUE(erased);
  ASSERT_EQ(erased->at(0).error, ErrorCode::none);
}

}  // namespace millrace::kernel
