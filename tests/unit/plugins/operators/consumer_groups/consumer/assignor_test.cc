// What holds for every assignor, over random groups; and what each of them promises beyond.
#include "plugins/operators/consumer_groups/consumer/assignor.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::consumer_groups {
namespace {

using ::testing::ElementsAre;

ClusterTopic topic(std::string name, std::int32_t partitions, std::uint8_t number) {
  ClusterTopic topic{.name = std::move(name), .id = {}, .racks = {}};
  topic.id.bytes[15] = number;
  topic.racks.resize(static_cast<std::size_t>(partitions));
  return topic;
}

/// A group, and what its members were given last.
struct Group {
  struct Entry {
    std::string id;
    std::optional<std::string> instance;
    std::optional<std::string> rack;
    std::vector<const ClusterTopic*> topics;
    Assignment has;
  };
  std::vector<Entry> members;

  void assign(std::string_view assignor) {
    std::vector<AssignorMember> asked;
    for (const auto& member : members) {
      asked.push_back({.id = member.id,
                       .instance_id = member.instance,
                       .rack = member.rack,
                       .topics = member.topics,
                       .before = &member.has});
    }
    auto assigned = find_assignor(assignor)->assign(asked);
    ASSERT_EQ(assigned.size(), members.size());
    for (std::size_t i = 0; i < members.size(); ++i) members[i].has = std::move(assigned[i]);
  }
  Entry& of(std::string_view id) {
    return *std::ranges::find(members, id, [](const Entry& entry) { return entry.id; });
  }
};

using Place = std::pair<Uuid, std::int32_t>;

std::set<Place> places(const Assignment& assignment) {
  std::set<Place> out;
  for (const auto& [id, partitions] : assignment) {
    for (const auto partition : partitions) out.emplace(id, partition);
  }
  return out;
}

void expect_complete(const Group& group) {
  std::set<Place> wanted;
  std::map<Place, std::string> owners;
  for (const auto& member : group.members) {
    for (const auto* topic : member.topics) {
      for (std::int32_t p = 0; p < topic->partitions(); ++p) wanted.emplace(topic->id, p);
    }
    for (const auto& [id, partitions] : member.has) {
      EXPECT_FALSE(partitions.empty());
      EXPECT_TRUE(std::ranges::is_sorted(partitions));
      EXPECT_TRUE(std::ranges::any_of(member.topics, [&](auto* t) { return t->id == id; }))
          << member.id << " has what it does not subscribe to";
    }
    for (const auto& place : places(member.has)) {
      const auto [found, first] = owners.emplace(place, member.id);
      EXPECT_TRUE(first) << place.second << " is " << found->second << "'s and " << member.id
                         << "'s";
    }
  }
  EXPECT_EQ(owners.size(), wanted.size());
}

std::size_t moved(const Group& before, const Group& after) {
  std::map<Place, std::string> owners;
  for (const auto& member : before.members) {
    for (const auto& place : places(member.has)) owners[place] = member.id;
  }
  std::size_t moves = 0;
  for (const auto& member : after.members) {
    for (const auto& place : places(member.has)) {
      const auto had = owners.find(place);
      if (had != owners.end() && had->second != member.id) ++moves;
    }
  }
  return moves;
}

class AssignorTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, AssignorTest, ::testing::Values("uniform", "range"),
                         [](const auto& info) { return info.param; });

TEST_P(AssignorTest, GivesEveryPartitionToOneSubscriberWhateverHappens) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<ClusterTopic> topics;
    for (std::uint8_t t = 0; t < 6; ++t) {
      topics.push_back(topic("t" + std::to_string(t), static_cast<std::int32_t>(random() % 12), t));
      if (seed % 2 == 0) {
        for (auto& racks : topics.back().racks) racks = {"r" + std::to_string(random() % 3)};
      }
    }
    Group group;
    for (int step = 0; step < 12; ++step) {
      if (group.members.empty() || random() % 3 != 0) {
        Group::Entry member{
            .id = "m" + std::to_string(step), .instance = {}, .rack = {}, .topics = {}, .has = {}};
        if (random() % 2 == 0) member.rack = "r" + std::to_string(random() % 3);
        for (const auto& each : topics) {
          if (seed % 3 == 0 || random() % 2 == 0) member.topics.push_back(&each);
        }
        group.members.push_back(std::move(member));
      } else {
        group.members.erase(group.members.begin() +
                            static_cast<std::ptrdiff_t>(random() % group.members.size()));
      }
      group.assign(GetParam());
      expect_complete(group);
      const Group settled = group;
      group.assign(GetParam());
      EXPECT_EQ(moved(settled, group), 0U) << "nothing has changed";
    }
  }
}

TEST_P(AssignorTest, DoesNotDependOnTheOrderOfMembers) {
  const auto a = topic("a", 7, 1);
  const auto b = topic("b", 5, 2);
  Group group{
      .members = {{"x", {}, {}, {&a, &b}, {}}, {"y", {}, {}, {&a}, {}}, {"z", {}, {}, {&b}, {}}}};
  Group turned{.members = {group.members[2], group.members[0], group.members[1]}};
  group.assign(GetParam());
  turned.assign(GetParam());
  for (const auto& member : group.members) EXPECT_EQ(member.has, turned.of(member.id).has);
}

TEST_P(AssignorTest, PrefersReplicasOfTheMembersRack) {
  auto near = topic("t", 6, 1);
  for (std::size_t p = 0; p < 6; ++p) near.racks[p] = {p % 2 == 0 ? "left" : "right"};
  Group group{.members = {{"a", {}, "right", {&near}, {}}, {"b", {}, "left", {&near}, {}}}};
  group.assign(GetParam());
  EXPECT_THAT(group.of("a").has.at(near.id), ElementsAre(1, 3, 5));
  EXPECT_THAT(group.of("b").has.at(near.id), ElementsAre(0, 2, 4));
}

TEST(UniformAssignorTest, SharesDifferByOneAtMost) {
  const auto a = topic("a", 7, 1);
  const auto b = topic("b", 10, 2);
  for (std::size_t members = 1; members <= 20; ++members) {
    Group group;
    for (std::size_t i = 0; i < members; ++i) {
      group.members.push_back({"m" + std::to_string(i), {}, {}, {&a, &b}, {}});
    }
    group.assign("uniform");
    for (const auto& member : group.members) {
      EXPECT_GE(count(member.has), 17 / members);
      EXPECT_LE(count(member.has), 17 / members + (17 % members == 0 ? 0 : 1));
    }
  }
}

TEST(UniformAssignorTest, MovesNoMoreThanANewMemberNeeds) {
  const auto t = topic("t", 60, 1);
  Group group;
  for (int i = 0; i < 5; ++i) group.members.push_back({"m" + std::to_string(i), {}, {}, {&t}, {}});
  group.assign("uniform");
  auto before = group;
  group.members.push_back({"new", {}, {}, {&t}, {}});
  group.assign("uniform");
  EXPECT_EQ(moved(before, group), 10U);

  before = group;
  group.members.erase(group.members.begin());
  group.assign("uniform");
  expect_complete(group);
  EXPECT_EQ(moved(before, group), 10U) << "those of the member that left";
}

TEST(UniformAssignorTest, EvensOutDifferentSubscriptions) {
  const auto a = topic("a", 6, 1);
  const auto b = topic("b", 2, 2);
  // The one that can only read b gets all of it; the others share a.
  Group group{.members = {{"both", {}, {}, {&a, &b}, {}},
                          {"a", {}, {}, {&a}, {}},
                          {"b", {}, {}, {&b}, {}}}};
  group.assign("uniform");
  expect_complete(group);
  EXPECT_EQ(count(group.of("both").has), 3U);
  EXPECT_EQ(count(group.of("a").has), 3U);
  EXPECT_EQ(count(group.of("b").has), 2U);
}

TEST(UniformAssignorTest, KeepsStaticMembersApartFromTheirMemberIds) {
  const auto t = topic("t", 2, 1);
  Group group{.members = {{"zz", "first", {}, {&t}, {}}, {"aa", "second", {}, {&t}, {}}}};
  group.assign("uniform");
  EXPECT_THAT(group.of("zz").has.at(t.id), ElementsAre(0));
}

TEST(RangeAssignorTest, DividesTopicsOfOneSizeAlike) {
  const auto a = topic("a", 5, 1);
  const auto b = topic("b", 5, 2);
  Group group{.members = {{"x", {}, {}, {&a, &b}, {}}, {"y", {}, {}, {&a, &b}, {}}}};
  group.assign("range");
  EXPECT_THAT(group.of("x").has.at(a.id), ElementsAre(0, 1, 2));
  EXPECT_THAT(group.of("y").has.at(a.id), ElementsAre(3, 4));
  group.members.push_back({"z", {}, {}, {&a, &b}, {}});
  group.assign("range");
  expect_complete(group);
  for (const auto& member : group.members) {
    EXPECT_EQ(member.has.at(a.id), member.has.at(b.id)) << member.id;
  }
  group.members.erase(group.members.begin());
  group.assign("range");
  expect_complete(group);
  for (const auto& member : group.members) {
    EXPECT_EQ(member.has.at(a.id), member.has.at(b.id)) << member.id;
  }
}

TEST(RangeAssignorTest, KeepsWhatAMemberHas) {
  const auto t = topic("t", 6, 1);
  Group group{.members = {{"x", {}, {}, {&t}, {}}, {"y", {}, {}, {&t}, {}}}};
  group.assign("range");
  const auto before = group;
  group.members.push_back({"a", {}, {}, {&t}, {}});
  group.assign("range");
  EXPECT_EQ(moved(before, group), 2U);
  EXPECT_EQ(count(group.of("a").has), 2U);
}

TEST(AssignorsTest, AreFoundByName) {
  EXPECT_EQ(find_assignor("uniform")->name(), "uniform");
  EXPECT_EQ(find_assignor("range")->name(), "range");
  EXPECT_EQ(find_assignor("sticky"), nullptr);
}

}  // namespace
}  // namespace millrace::consumer_groups
