// Members of both protocols come, leave and die at random in one group, which moves between the
// protocols all the time, while appends fail and the coordinator is reloaded: nobody who is in the
// group reads what another one in it reads, and in the end everything is read.
#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "consumer.h"
#include "plugins/operators/consumer_groups/consumer/classic_protocol.h"

namespace millrace::consumer_groups::testing {
namespace {

/// A classic consumer that gives everything up before it joins again.
struct EagerClient {
  Client client;
  std::set<Place> owned = {};
  std::optional<ReplyTo> joining = {};
  std::optional<ReplyTo> syncing = {};

  void lose() {
    owned.clear();
    joining.reset();
    syncing.reset();
  }
};

class MixedChurnTest : public ConsumerBench, public ::testing::WithParamInterface<unsigned> {
 public:
  void run(unsigned seed) {
    random_.seed(seed);
    if (chance(2)) set("group.consumer.assignment.interval.ms", "1000");
    for (int step = 0; step < 400; ++step) {
      act();
      check();
      if (HasFailure()) return;
    }
    settle_everything();
  }

 private:
  bool chance(unsigned one_in) { return random_() % one_in == 0; }

  void act() {
    driver.advance(std::chrono::milliseconds(random_() % 1500));
    if (chance(40)) driver.fail_appends();
    if (chance(40)) reload();
    if (chance(14) && news_.size() + olds_.size() < 8) return come();
    if (chance(18)) return go();
    if (chance(30)) return die();
    if (!news_.empty() && (olds_.empty() || chance(2))) {
      live(*std::next(news_.begin(), static_cast<std::ptrdiff_t>(random_() % news_.size())));
    } else if (!olds_.empty()) {
      live(*std::next(olds_.begin(), static_cast<std::ptrdiff_t>(random_() % olds_.size())));
    }
  }

  /// Who waits hears nothing more.
  void reload() {
    ASSERT_TRUE(driver.reload());
    for (auto& old : olds_) {
      if (old.joining || old.syncing) old.lose();
    }
  }

  void come() {
    const std::string name = "m" + std::to_string(next_++);
    if (chance(2)) {
      news_.push_back(Consumer{.id = name});
      live(news_.back());
    } else {
      olds_.push_back(EagerClient{.client = {.client_id = name}});
      live(olds_.back());
    }
  }

  void go() {
    if (!news_.empty() && (olds_.empty() || chance(2))) {
      if (leave(news_.front()).error != ErrorCode::coordinator_not_available) news_.pop_front();
    } else if (!olds_.empty()) {
      auto& old = olds_.front();
      if (!old.client.member_id.empty()) (void)driver.answer(leave_request(old));
      olds_.pop_front();
    }
  }
  ReplyTo leave_request(const EagerClient& old) {
    return Bench::send("g", LeaveGroupRequest{"g", {{old.client.member_id, std::nullopt, ""}}});
  }

  void die() {
    if (!news_.empty() && chance(2)) news_.pop_back();
    if (!olds_.empty() && chance(2)) olds_.pop_back();
  }

  void live(Consumer& consumer) {
    const auto error = consumer.epoch == 0 ? join(consumer).error : beat(consumer).error;
    switch (error) {
      case ErrorCode::none:
        if (!chance(4)) settle(consumer);
        break;
      case ErrorCode::fenced_member_epoch:
      case ErrorCode::unknown_member_id:
        consumer.owned.clear();
        consumer.epoch = 0;
        break;
      case ErrorCode::coordinator_not_available: break;
      case ErrorCode::group_id_not_found:
        // Its group went back to the classic protocol when it was out: it is told when it rejoins.
        consumer.owned.clear();
        consumer.epoch = 0;
        break;
      default: ADD_FAILURE() << consumer.id << " got " << static_cast<int>(error);
    }
  }

  void live(EagerClient& old) {
    if (old.joining) return end_join_of(old);
    if (old.syncing) return end_sync_of(old);
    if (old.client.generation < 0) return rejoin(old);
    const auto token = Bench::send("g", GroupHeartbeat{.group = "g",
                                                       .generation = old.client.generation,
                                                       .member_id = old.client.member_id,
                                                       .instance_id = {}});
    if (driver.error(token) != ErrorCode::none) return;
    took(old, taken<ErrorCode>(token));
  }

  void took(EagerClient& old, ErrorCode error) {
    switch (error) {
      case ErrorCode::none: return;
      case ErrorCode::rebalance_in_progress: return rejoin(old);
      case ErrorCode::unknown_member_id: old.client.member_id.clear(); [[fallthrough]];
      case ErrorCode::illegal_generation:
        old.lose();
        old.client.generation = -1;
        return;
      default: ADD_FAILURE() << old.client.client_id << " got " << static_cast<int>(error);
    }
  }

  void rejoin(EagerClient& old) {
    old.lose();
    old.client.generation = -1;
    old.joining = send_join(old.client);
  }

  void end_join_of(EagerClient& old) {
    if (waits(*old.joining)) return;
    const auto token = *std::exchange(old.joining, std::nullopt);
    if (driver.error(token) != ErrorCode::none) return;
    const auto answer = taken<JoinGroupAnswer>(token);
    if (answer.error == ErrorCode::member_id_required) {
      old.client.member_id = answer.member_id;
      return;
    }
    if (answer.error != ErrorCode::none) return took(old, answer.error);
    old.client.member_id = answer.member_id;
    old.client.generation = answer.generation;
    std::vector<GroupAssignment> assignments;
    if (!answer.members.empty()) {
      std::map<std::string, Owned> shares;
      for (const auto& member : answer.members) shares[member.member_id];
      auto at = shares.begin();
      for (std::int32_t p = 0; p < 4; ++p) {
        at->second[topic("orders")][p] = 0;
        if (++at == shares.end()) at = shares.begin();
      }
      for (const auto& [member, share] : shares) {
        assignments.push_back({member, *write_assignment(share, 0, driver.cluster())});
      }
    }
    old.syncing = send_sync(old.client, std::move(assignments));
  }

  void end_sync_of(EagerClient& old) {
    if (waits(*old.syncing)) return;
    const auto token = *std::exchange(old.syncing, std::nullopt);
    if (driver.error(token) != ErrorCode::none) {
      old.client.generation = -1;
      return;
    }
    const auto answer = taken<SyncGroupAnswer>(token);
    if (answer.error != ErrorCode::none) return took(old, answer.error);
    const auto assigned = read_assignment(answer.assignment, driver.cluster());
    ASSERT_TRUE(assigned);
    for (const auto& [id, partitions] : assigned->partitions) {
      for (const auto p : partitions) old.owned.emplace(id, p);
    }
  }

  std::set<std::string> in_group() {
    std::set<std::string> ids;
    for (const auto& member : described().members) ids.insert(member.member_id);
    for (const auto& member : Bench::describe("g").members) ids.insert(member.member_id);
    return ids;
  }

  void check() {
    const auto members = in_group();
    std::map<Place, std::string> readers;
    const auto reads = [&](const std::string& id, const std::set<Place>& owned) {
      if (!members.contains(id)) return;
      for (const auto& place : owned) {
        const auto [had, first] = readers.emplace(place, id);
        EXPECT_TRUE(first) << place.second << " is read by " << had->second << " and " << id;
      }
    };
    for (const auto& consumer : news_) reads(consumer.id, consumer.owned);
    for (const auto& old : olds_) reads(old.client.member_id, old.owned);
  }

  void settle_everything() {
    if (news_.empty() && olds_.empty()) come();
    for (int round = 0; round < 60; ++round) {
      driver.advance(2s);
      for (auto& consumer : news_) {
        live(consumer);
        settle(consumer);
      }
      for (auto& old : olds_) live(old);
    }
    check();
    std::set<Place> owned;
    for (const auto& consumer : news_) owned.insert(consumer.owned.begin(), consumer.owned.end());
    for (const auto& old : olds_) owned.insert(old.owned.begin(), old.owned.end());
    EXPECT_EQ(owned.size(), 4U);
    EXPECT_EQ(in_group().size(), news_.size() + olds_.size());
  }

  std::mt19937 random_;
  std::list<Consumer> news_;
  std::list<EagerClient> olds_;
  unsigned next_ = 0;
};

TEST_P(MixedChurnTest, KeepsItsPromises) { run(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Seeds, MixedChurnTest, ::testing::Range(1U, 31U));

}  // namespace
}  // namespace millrace::consumer_groups::testing
