// Aggregates on a log that takes its time: who waits, and what is lost with a write that is lost
// after its append has succeeded.
#include <utility>

#include "../partition/test_storage.h"
#include "aggregate_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::seconds;

/// Ledgers of one partition, on a log that can be slow and can lose what it has.
class SlowLogTest : public AggregateTest {
 protected:
  SlowLogTest() {
    close();
    own_storage_ = &storage_;
    restart();
    declaration_.partitions = 1;
    factory_ = std::make_unique<LedgerFactory>(script_, declaration_);
    reopen();
  }
  ~SlowLogTest() override {
    close();
    own_storage_ = nullptr;
    restart();
  }

  /// What was appended since `kept` batches were there is on no disk.
  void lose_writes(std::size_t kept) {
    storage_.stored.batches.resize(kept);
    storage_.stored.written_error = Error{Errc::io, "the disk is gone"};
    let_writes_end();
  }
  void let_writes_end() {
    storage_.stored.hold_written = false;
    release();
  }
  void release() {
    auto& owner = broker_->partitions().owner_of(declaration_.topic, 0).shard();
    owner.post([this] { storage_.stored.released.notify_all(); });
    settle();
  }

  testing::TestStorage storage_{node_};
};

TEST_F(SlowLogTest, CallsWaitForALoadThatIsUnderWay) {
  EXPECT_EQ(text_of(ask("a", put("one"))), "one");
  storage_.stored.hold_reads = true;
  reopen();
  const auto asked = begin_query("a", 1);
  settle();
  std::vector<Later> answers;
  for (int n = 1; n < 150; ++n) answers.push_back(begin("a", put(std::to_string(n))));
  world_.run_for(seconds(1));
  for (std::size_t at = 0; at < answers.size(); ++at) {
    EXPECT_EQ(answers[at]->has_value(), at >= 99) << "call " << at;  // a hundred with the question
  }
  EXPECT_EQ(text_of(**answers.back()), "COORDINATOR_LOAD_IN_PROGRESS");
  storage_.stored.hold_reads = false;
  release();
  ASSERT_TRUE(comes(asked));
  EXPECT_EQ(text_of(**asked), "one");
  ASSERT_TRUE(comes(answers.front()));
  EXPECT_EQ(text_of(**answers.front()), "1");
  EXPECT_EQ(text_of(query("a")), "99");
}

TEST_F(SlowLogTest, CallsDoNotWaitForALongLoad) {
  EXPECT_EQ(text_of(ask("a", put("one"))), "one");
  storage_.stored.hold_reads = true;
  reopen();
  const auto first = begin("a", put("two"));
  world_.run_for(seconds(4));
  EXPECT_FALSE(first->has_value());
  world_.run_for(seconds(2));
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ(text_of(**first), "COORDINATOR_LOAD_IN_PROGRESS");
  EXPECT_EQ(text_of(ask("a", put("three"))), "COORDINATOR_LOAD_IN_PROGRESS");
  storage_.stored.hold_reads = false;
  release();
  EXPECT_EQ(text_of(ask("a", put("four"))), "four");
}

TEST_F(SlowLogTest, WhoGivesUpDuringALoadIsForgotten) {
  EXPECT_EQ(text_of(ask("a", put("one"))), "one");
  storage_.stored.hold_reads = true;
  reopen();
  const std::size_t owner = broker_->partitions().owner_of(declaration_.topic, 0).shard().index();
  for (const auto shard : {owner, 1 - owner}) {
    CancelScope scope;
    const auto answer = begin("a", put("given up"), shard, &scope);
    settle();
    scope.cancel();
    settle();
  }
  storage_.stored.hold_reads = false;
  release();
  EXPECT_EQ(text_of(query("a")), "one");
}

TEST_F(SlowLogTest, ASlowWriteHoldsItsAnswerBack) {
  EXPECT_EQ(text_of(ask("a", put("one"))), "one");
  storage_.stored.hold_written = true;
  const auto answer = begin("a", put("two"));
  const auto asked = begin_query("a", 1);
  world_.run_for(seconds(10));
  EXPECT_FALSE(answer->has_value());
  EXPECT_FALSE(asked->has_value());
  let_writes_end();
  ASSERT_TRUE(comes(answer));
  ASSERT_TRUE(comes(asked));
  EXPECT_EQ(text_of(**answer), "two");
  EXPECT_EQ(text_of(**asked), "two");
}

TEST_F(SlowLogTest, ALostWriteLeavesNoAnswerAndNoState) {
  EXPECT_EQ(text_of(ask("a", put("one"))), "one");
  const auto kept = storage_.stored.batches.size();
  const auto loads = script_.loads;
  storage_.stored.hold_written = true;
  const auto first = begin("a", put("two"));
  const auto second = begin("b", put("three"), 1);
  const auto asked = begin_query("a");
  const auto parked = begin("c", wait());
  world_.run_for(seconds(10));
  EXPECT_FALSE(first->has_value());
  EXPECT_EQ(storage_.stored.batches.size(), kept + 2);

  lose_writes(kept);
  for (const auto& answer : {first, second, asked, parked}) {
    ASSERT_TRUE(comes(answer));
    EXPECT_EQ(text_of(**answer), "COORDINATOR_NOT_AVAILABLE");
  }
  world_.run_for(seconds(1));
  EXPECT_EQ(script_.loads, loads + 1);
  EXPECT_EQ(text_of(query("a")), "one");
  EXPECT_EQ(text_of(query("b")), "UNKNOWN_TOPIC_OR_PARTITION");
  EXPECT_TRUE(log_.contains("an aggregate has failed; it is loaded again"));

  // And so it is after a restart, on a disk that works again.
  close();
  storage_.stored.written_error.reset();
  restart();
  reopen();
  EXPECT_EQ(text_of(query("a")), "one");
  EXPECT_EQ(text_of(ask("b", put("four"))), "four");
}

}  // namespace
}  // namespace millrace::kernel
