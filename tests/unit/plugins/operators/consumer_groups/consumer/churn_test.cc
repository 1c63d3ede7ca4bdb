// Members come, leave, die and change their minds at random, while the coordinator is reloaded and
// its appends fail. Whatever happens: no partition has two owners, epochs only grow, the log makes
// the same state again (the bench looks at that), and in the end everything is somebody's.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "consumer.h"

namespace millrace::consumer_groups::testing {
namespace {

class ChurnTest : public ConsumerBench, public ::testing::WithParamInterface<unsigned> {
 public:
  void run(unsigned seed) {
    random_.seed(seed);
    set("group.consumer.assignment.interval.ms", chance(2) ? "0" : "1000");
    for (int step = 0; step < 300; ++step) {
      act();
      check();
      if (HasFailure()) return;
    }
    settle_everything();
  }

 private:
  bool chance(unsigned one_in) { return random_() % one_in == 0; }
  Consumer& any() { return members_[random_() % members_.size()]; }

  void act() {
    driver.advance(std::chrono::milliseconds(random_() % 2000));
    if (chance(40)) driver.fail_appends();
    if (chance(30)) ASSERT_TRUE(driver.reload());
    if (chance(50)) grow_a_topic();
    if (members_.empty() || (members_.size() < 12 && chance(8))) return come();
    if (chance(20)) return go();
    if (chance(25)) return die();
    if (chance(15)) return settle(any());
    live(any());
  }

  void come() {
    Consumer consumer{.id = "m" + std::to_string(next_++)};
    if (chance(4)) {
      consumer.regex = chance(2) ? ".*s" : "o.*";
    } else {
      consumer.names = chance(2) ? std::vector<std::string>{"orders", "bills"}
                                 : std::vector<std::string>{chance(2) ? "orders" : "bills"};
    }
    if (chance(4)) consumer.instance_id = "i" + consumer.id;
    if (chance(5)) consumer.assignor = "range";
    if (join(consumer).error == ErrorCode::none) members_.push_back(consumer);
  }

  void go() {
    const auto at = random_() % members_.size();
    Consumer& gone = members_[at];
    if (gone.instance_id && chance(2)) {
      if (leave(gone, -2).error != ErrorCode::none) return;
      Consumer again = gone;
      again.id = "m" + std::to_string(next_++);
      if (join(again).error == ErrorCode::none) {
        gone = again;
        return;
      }
    } else if (leave(gone).error != ErrorCode::none) {
      return;
    }
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  /// It is never heard of again: nothing is its own once its session is over.
  void die() {
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(random_() % members_.size()));
  }

  void live(Consumer& consumer) {
    if (consumer.epoch == 0) {
      join(consumer);
      return;
    }
    const auto epoch = consumer.epoch;
    const auto error = beat(consumer).error;
    switch (error) {
      case ErrorCode::none:
        EXPECT_GE(consumer.epoch, epoch) << consumer.id;
        if (chance(3)) settle(consumer);
        break;
      case ErrorCode::fenced_member_epoch:
      case ErrorCode::unknown_member_id: join(consumer); break;
      case ErrorCode::coordinator_not_available: break;  // the client tries again
      default: ADD_FAILURE() << consumer.id << " got " << static_cast<int>(error);
    }
  }

  void grow_a_topic() {
    driver.cluster().put("orders", 1 + static_cast<std::int32_t>(orders_++));
    driver.cluster_changed();
  }

  void check() {
    const auto group = described();
    if (group.error != ErrorCode::none) return;
    EXPECT_GE(group.group_epoch, group_epoch_);
    EXPECT_GE(group.assignment_epoch, assignment_epoch_);
    EXPECT_LE(group.assignment_epoch, group.group_epoch);
    group_epoch_ = group.group_epoch;
    assignment_epoch_ = group.assignment_epoch;
    std::map<Place, std::string> owners;
    for (const auto& member : group.members) {
      for (const auto& topic : member.assignment.topics) {
        for (const auto partition : topic.partitions) {
          const auto [had, first] = owners.emplace(Place(topic.id, partition), member.member_id);
          EXPECT_TRUE(first) << topic.name << "-" << partition << " is " << had->second << "'s and "
                             << member.member_id << "'s";
        }
      }
    }
    // What clients that are in the group read from, whatever they were told meanwhile.
    std::map<Place, std::string> readers;
    for (const auto& consumer : members_) {
      const bool in_group = std::ranges::any_of(
          group.members, [&](const auto& member) { return member.member_id == consumer.id; });
      if (!in_group) continue;
      for (const auto& place : consumer.owned) {
        const auto [had, first] = readers.emplace(place, consumer.id);
        EXPECT_TRUE(first) << place.second << " is read by " << had->second << " and "
                           << consumer.id;
      }
    }
  }

  void settle_everything() {
    set("group.consumer.assignment.interval.ms", "0");
    for (int round = 0; round < 30; ++round) {
      driver.advance(5s);
      for (auto& consumer : members_) {
        live(consumer);
        settle(consumer);
      }
    }
    const auto group = described();
    if (members_.empty()) return;
    EXPECT_EQ(group.state, "Stable");
    EXPECT_EQ(group.members.size(), members_.size());
    std::set<Place> owned;
    for (const auto& consumer : members_)
      owned.insert(consumer.owned.begin(), consumer.owned.end());
    for (const auto& name : {"orders", "bills"}) {
      const bool read = std::ranges::any_of(members_, [&](const Consumer& consumer) {
        if (consumer.regex) return consumer.regex == ".*s" || std::string_view(name) == "orders";
        return std::ranges::find(consumer.names, name) != consumer.names.end();
      });
      if (!read) continue;
      const auto* topic = driver.cluster().find(name);
      for (std::int32_t p = 0; p < topic->partitions(); ++p) {
        EXPECT_TRUE(owned.contains(Place(topic->id, p))) << name << "-" << p;
      }
    }
  }

  std::mt19937 random_;
  std::vector<Consumer> members_;
  unsigned next_ = 0;
  int orders_ = 4;
  std::int32_t group_epoch_ = 0;
  std::int32_t assignment_epoch_ = 0;
};

TEST_P(ChurnTest, KeepsItsPromises) { run(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Seeds, ChurnTest, ::testing::Range(1U, 31U));

}  // namespace
}  // namespace millrace::consumer_groups::testing
