// What every coordination backend must do, as gtest cases. Include it in one source file of a test
// program and name the backend:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, CoordinationContract,
//                            ::testing::Values(CoordinationCase{"mine", make_subject}));
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/coordination.h>

namespace millrace::testing {

/// A backend under test, in an environment of its own, empty at first.
class CoordinationSubject {
 public:
  virtual ~CoordinationSubject() = default;
  virtual Coordination& coordination() = 0;
  /// Ends the instance, and its session with it, and makes the next one over the same state.
  virtual void restart() = 0;
  /// Where calls are made; between runs the caller's thread may stand in for it.
  virtual Shard& control() = 0;
  /// Lets the environment work until `done` holds, or nothing is left to do.
  virtual void run_until(const std::function<bool()>& done) = 0;

  /// Runs a task to its end.
  template <class T>
  Result<T> run(Task<T> task) {
    auto pending = start(control(), std::move(task));
    run_until([&pending] { return pending.is_ready(); });
    if (!pending.is_ready()) return Error{Errc::timed_out, "the task does not end"};
    return pending.await_resume();
  }
};

struct CoordinationCase {
  std::string name;
  std::function<std::unique_ptr<CoordinationSubject>()> make;
};
inline void PrintTo(const CoordinationCase& one, std::ostream* out) { *out << one.name; }

class CoordinationContract : public ::testing::TestWithParam<CoordinationCase> {
 protected:
  void SetUp() override { join(); }

  void join() {
    auto joined = subject_->run(coordination().join({.broker_id = 1}));
    ASSERT_TRUE(joined) << to_string(joined.error());
    lease_ = *std::move(joined);
  }
  void restart() {
    lease_.reset();
    subject_->restart();
    join();
  }

  Coordination& coordination() { return subject_->coordination(); }
  Result<std::vector<Version>> commit(std::vector<Write> writes) {
    return subject_->run(coordination().commit(std::move(writes)));
  }
  /// Writes one persistent key, which must succeed.
  void put(std::string key, std::string value) {
    const auto committed = commit({{.key = std::move(key), .value = std::move(value)}});
    EXPECT_TRUE(committed) << to_string(committed.error());
  }
  Result<Versioned> get(std::string key) {
    return subject_->run(coordination().get(std::move(key)));
  }
  /// "" for a key that is not there.
  std::string value_of(std::string key) {
    const auto found = get(std::move(key));
    if (!found) EXPECT_EQ(found.error().code, Errc::not_found) << to_string(found.error());
    return found ? found->value : "";
  }
  std::vector<std::string> list(std::string prefix) {
    const auto names = subject_->run(coordination().list(std::move(prefix)));
    EXPECT_TRUE(names) << to_string(names.error());
    return names ? *names : std::vector<std::string>();
  }
  Seen look(std::string prefix) {
    const auto seen = subject_->run(coordination().next_change(std::move(prefix), Seen{}));
    EXPECT_TRUE(seen) << to_string(seen.error());
    return seen ? *seen : Seen{};
  }
  Pending<Seen> wait(std::string prefix, Seen seen) {
    return start(subject_->control(), coordination().next_change(std::move(prefix), seen));
  }
  void settle() {
    subject_->run_until([] { return false; });
  }

  std::unique_ptr<CoordinationSubject> subject_ = GetParam().make();
  std::unique_ptr<Lease> lease_;
};

TEST_P(CoordinationContract, CountsTheVersionsOfAKey) {
  const auto created = commit({{.key = "/a/b", .value = "one", .expected = must_not_exist}});
  ASSERT_TRUE(created) << to_string(created.error());
  EXPECT_EQ(*created, std::vector<Version>{0});
  const auto written = commit({{.key = "/a/b", .value = "two", .expected = 0}});
  ASSERT_TRUE(written) << to_string(written.error());
  EXPECT_EQ(*written, std::vector<Version>{1});
  const auto found = get("/a/b");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, "two");
  EXPECT_EQ(found->version, 1);
  EXPECT_FALSE(found->ephemeral);
}

TEST_P(CoordinationContract, KeepsValuesByteForByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  put("/bytes", bytes);
  put("/empty", "");
  EXPECT_EQ(get("/bytes")->value, bytes);
  EXPECT_EQ(get("/empty")->value, "");
}

TEST_P(CoordinationContract, SaysThatAKeyIsNotThere) {
  EXPECT_EQ(get("/nothing").error().code, Errc::not_found);
  EXPECT_EQ(commit({{.key = "/nothing", .value = std::nullopt}}).error().code, Errc::not_found);
}

TEST_P(CoordinationContract, RefusesAnotherVersionThanTheExpectedOne) {
  put("/a", "one");
  for (const Version expected : {Version{1}, must_not_exist}) {
    const auto refused = commit({{.key = "/a", .value = "two", .expected = expected}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::conflict);
    EXPECT_TRUE(refused.error().detail.contains("/a")) << refused.error().detail;
  }
  EXPECT_EQ(commit({{.key = "/b", .value = "x", .expected = 0}}).error().code, Errc::conflict);
  EXPECT_EQ(commit({{.key = "/a", .value = std::nullopt, .expected = 1}}).error().code,
            Errc::conflict);
  EXPECT_EQ(value_of("/a"), "one");
}

TEST_P(CoordinationContract, CommitsAllOrNothing) {
  put("/a", "one");
  const auto refused = commit({{.key = "/b", .value = "new", .expected = must_not_exist},
                               {.key = "/a", .value = "two", .expected = 7},
                               {.key = "/c", .value = "new", .expected = must_not_exist}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_EQ(value_of("/a"), "one");
  EXPECT_EQ(value_of("/b"), "");

  const auto done = commit({{.key = "/b", .value = "new", .expected = must_not_exist},
                            {.key = "/a", .value = std::nullopt, .expected = 0}});
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_EQ(value_of("/b"), "new");
  EXPECT_EQ(value_of("/a"), "");
}

TEST_P(CoordinationContract, BeginsAgainAtVersionZeroAfterARemoval) {
  put("/a", "one");
  put("/a", "two");
  ASSERT_TRUE(commit({{.key = "/a", .value = std::nullopt}}));
  put("/a", "three");
  EXPECT_EQ(get("/a")->version, 0);
}

TEST_P(CoordinationContract, ListsTheNamesOfChildren) {
  for (const auto* key : {"/t/b", "/t/a/x", "/t/a/y", "/t/a-", "/tt/c", "/t/c", "/t/c-1"})
    put(key, "");
  EXPECT_EQ(list("/t"), (std::vector<std::string>{"a", "a-", "b", "c", "c-1"}));
  EXPECT_EQ(list("/t/a"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(list("/nothing"), std::vector<std::string>());
}

TEST_P(CoordinationContract, LosesEphemeralKeysWithTheSessionAndKeepsTheOthers) {
  put("/kept", "yes");
  ASSERT_TRUE(commit({{.key = "/ours", .value = "here", .ephemeral = true},
                      {.key = "/kept/too", .value = "also"}}));
  EXPECT_TRUE(get("/ours")->ephemeral);
  restart();
  EXPECT_EQ(value_of("/ours"), "");
  EXPECT_EQ(value_of("/kept"), "yes");
  EXPECT_EQ(value_of("/kept/too"), "also");
  EXPECT_TRUE(
      commit({{.key = "/ours", .value = "again", .expected = must_not_exist, .ephemeral = true}}));
}

TEST_P(CoordinationContract, PutsNothingBelowAKeyThatGoesWithALease) {
  put("/w/a/b", "x");
  ASSERT_TRUE(commit({{.key = "/ours", .value = "here", .ephemeral = true}}));
  EXPECT_EQ(commit({{.key = "/ours/b", .value = "x"}}).error().code, Errc::invalid_argument);
  EXPECT_EQ(commit({{.key = "/w/a", .value = "x", .ephemeral = true}}).error().code,
            Errc::invalid_argument);
}

TEST_P(CoordinationContract, MakesAKeyAnewThatIsToGoWithALeaseOrIsToStay) {
  put("/a", "one");
  put("/a", "two");
  ASSERT_TRUE(commit({{.key = "/a", .value = "three", .expected = 1, .ephemeral = true}}));
  EXPECT_EQ(get("/a")->version, 0);
  EXPECT_TRUE(get("/a")->ephemeral);
  put("/a", "four");
  EXPECT_EQ(get("/a")->version, 0);
  restart();
  EXPECT_EQ(value_of("/a"), "four");
}

TEST_P(CoordinationContract, TellsAKeyFromAFolder) {
  put("/f/x/y/z", "deep");
  EXPECT_EQ(get("/f/x").error().code, Errc::not_found);
  EXPECT_EQ(commit({{.key = "/f/x", .value = std::nullopt}}).error().code, Errc::not_found);
  EXPECT_EQ(commit({{.key = "/f/x", .value = "v", .expected = 0}}).error().code, Errc::conflict);
  const auto made = commit({{.key = "/f/x", .value = "key", .expected = must_not_exist}});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(get("/f/x")->version, made->front());
  EXPECT_TRUE(commit({{.key = "/f/x", .value = "again", .expected = made->front()}}));
  ASSERT_TRUE(commit({{.key = "/f/x", .value = std::nullopt}}));
  EXPECT_EQ(get("/f/x").error().code, Errc::not_found);
  EXPECT_EQ(value_of("/f/x/y/z"), "deep");
  ASSERT_TRUE(commit({{.key = "/f/x/y/z", .value = std::nullopt}}));
  EXPECT_EQ(list("/f/x"), std::vector<std::string>());
}

TEST_P(CoordinationContract, TakesACommitOfTheSizeThatEveryBackendTakes) {
  std::vector<Write> writes;
  std::size_t bytes = 0;
  const auto next = [&writes] {
    // A topic's partitions: each below a folder of its own.
    return Write{
        .key = "/brokers/topics/some-topic/partitions/" + std::to_string(writes.size()) + "/state",
        .value = std::string(90, '1')};
  };
  while (bytes + commit_bytes_of(next()) <= commit_bytes_max) {
    bytes += commit_bytes_of(next());
    writes.push_back(next());
  }
  const auto made = commit(writes);
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(*made, std::vector<Version>(writes.size(), 0));
  EXPECT_EQ(list("/brokers/topics/some-topic/partitions").size(), writes.size());
  for (auto& write : writes) write.value.reset();
  const auto removed = commit(writes);
  ASSERT_TRUE(removed) << to_string(removed.error());
  EXPECT_EQ(list("/brokers/topics"), std::vector<std::string>());
}

TEST_P(CoordinationContract, KeepsVersionsOverARestart) {
  for (const auto* value : {"one", "two", "three"}) put("/a", value);
  restart();
  EXPECT_EQ(get("/a")->version, 2);
  EXPECT_TRUE(commit({{.key = "/a", .value = "four", .expected = 2}}));
}

TEST_P(CoordinationContract, GivesEachSessionAHigherEpoch) {
  EXPECT_GT(lease_->valid_until(), subject_->control().now());
  const auto first = lease_->epoch();
  restart();
  EXPECT_GT(lease_->epoch(), first);
}

TEST_P(CoordinationContract, TellsWhoWaitsThatTheStateIsAnother) {
  put("/w/a", "one");
  const auto seen = look("/w");
  auto waiting = wait("/w", seen);
  settle();
  EXPECT_FALSE(waiting.is_ready());
  put("/elsewhere", "x");
  settle();
  EXPECT_FALSE(waiting.is_ready()) << "a change elsewhere is none of its business";
  put("/w/a/deep", "two");
  settle();
  ASSERT_TRUE(waiting.is_ready());
  const auto changed = waiting.await_resume();
  ASSERT_TRUE(changed);
  EXPECT_NE(*changed, seen);
}

TEST_P(CoordinationContract, CompletesAtOnceForAStateThatIsPast) {
  put("/w/a", "one");
  const auto seen = look("/w");
  put("/w/a", "two");
  ASSERT_TRUE(commit({{.key = "/w/b", .value = "three", .ephemeral = true}}));
  auto late = wait("/w", seen);
  settle();
  ASSERT_TRUE(late.is_ready());
  EXPECT_EQ(*late.await_resume(), look("/w")) << "steps merge into the present state";
}

TEST_P(CoordinationContract, TellsOfARemoval) {
  put("/w/a", "one");
  put("/w/b", "two");
  auto waiting = wait("/w", look("/w"));
  ASSERT_TRUE(commit({{.key = "/w/a", .value = std::nullopt}}));
  settle();
  EXPECT_TRUE(waiting.is_ready());
}

TEST_P(CoordinationContract, TellsEveryoneWhoWaits) {
  put("/w/a", "one");
  const auto seen = look("/w");
  const auto above = look("/");
  auto first = wait("/w", seen);
  auto second = wait("/w", seen);
  auto third = wait("/w/a", look("/w/a"));
  auto of_all = wait("/", above);
  auto of_what_is_not = wait("/w/none", look("/w/none"));
  settle();
  EXPECT_FALSE(of_what_is_not.is_ready());
  put("/w/a", "two");
  put("/w/none/b", "new");
  settle();
  for (const auto* waiting : {&first, &second, &third, &of_all, &of_what_is_not}) {
    EXPECT_TRUE(waiting->is_ready());
  }
}

TEST_P(CoordinationContract, TellsOfAKeyThatWasRemovedAndMadeAgain) {
  put("/w/a", "one");
  const auto seen = look("/w");
  ASSERT_TRUE(commit({{.key = "/w/a", .value = std::nullopt}}));
  put("/w/a", "one");
  EXPECT_NE(look("/w"), seen);
  auto waiting = wait("/w", look("/w"));
  put("/w/a", "two");
  settle();
  EXPECT_TRUE(waiting.is_ready()) << "what was made again is looked at as well";
}

/// A key's history as the interface promises it.
class CoordinationModel {
 public:
  Errc apply(const std::vector<Write>& writes) {
    auto next = keys_;
    for (const auto& write : writes) {
      const auto found = next.find(write.key);
      const bool there = found != next.end();
      if (write.expected == must_not_exist && there) return Errc::conflict;
      if (write.expected >= 0 && (!there || found->second.version != write.expected)) {
        return Errc::conflict;
      }
      if (!write.value) {
        if (!there) return Errc::not_found;
        next.erase(found);
        continue;
      }
      const bool anew = !there || found->second.ephemeral != write.ephemeral;
      const auto version = anew ? 0 : found->second.version + 1;
      next.insert_or_assign(write.key, Versioned{*write.value, version, write.ephemeral});
    }
    keys_ = std::move(next);
    return Errc::ok;
  }
  void end_session() {
    std::erase_if(keys_, [](const auto& entry) { return entry.second.ephemeral; });
  }
  const std::map<std::string, Versioned>& keys() const noexcept { return keys_; }

 private:
  std::map<std::string, Versioned> keys_;
};

inline Write random_write(std::mt19937_64& random, int at) {
  Write write{.key = "/model/" + std::to_string(at)};
  if (random() % 4 != 0) write.value = std::to_string(random());
  if (random() % 2 == 0) write.expected = static_cast<Version>(random() % 4);
  if (random() % 8 == 0) write.expected = must_not_exist;
  write.ephemeral = write.value && random() % 4 == 0;
  return write;
}

TEST_P(CoordinationContract, AgreesWithAMapUnderRandomOperations) {
  std::mt19937_64 random(20);
  CoordinationModel model;
  for (int round = 0; round < 400; ++round) {
    if (random() % 40 == 0) {
      restart();
      model.end_session();
    }
    std::vector<Write> writes;
    // Each key once: how two writes of one commit meet is a backend's own affair.
    for (int at = 0; at < 8; ++at) {
      if (random() % 5 == 0) writes.push_back(random_write(random, at));
    }
    if (writes.empty()) continue;
    const auto expected = model.apply(writes);
    const auto committed = commit(writes);
    ASSERT_EQ(committed ? Errc::ok : committed.error().code, expected) << "round " << round;
    std::vector<std::string> names;
    for (const auto& [key, value] : model.keys()) {
      names.push_back(key.substr(key.rfind('/') + 1));
      const auto found = get(key);
      ASSERT_TRUE(found) << key << " in round " << round;
      EXPECT_EQ(found->value, value.value);
      EXPECT_EQ(found->version, value.version);
      EXPECT_EQ(found->ephemeral, value.ephemeral);
    }
    ASSERT_EQ(list("/model"), names) << "round " << round;
  }
}

}  // namespace millrace::testing
