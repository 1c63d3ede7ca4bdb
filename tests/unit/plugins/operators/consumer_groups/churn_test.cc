// Members that come, go, die and lose their answers at random, on a coordinator that is loaded
// anew, whose appends fail and whose answers are held back: whatever happens, in one generation a
// partition has one owner, and what was acknowledged as committed stays so.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

constexpr std::int32_t partitions = 4;  // of "orders"

class ChurnTest : public Bench, public ::testing::WithParamInterface<unsigned> {
 public:
  enum class Doing { nothing, joining, syncing, consuming, dead };
  struct Member {
    Client client;
    Doing doing = Doing::nothing;
    ReplyTo waits_for = ReplyTo::nobody;
    std::vector<JoinGroupMember> to_assign;
    std::vector<std::int32_t> owns;
    MonoTime beats;
  };

  unsigned pick(unsigned below) {
    return std::uniform_int_distribution<unsigned>(0, below - 1)(chance);
  }

  void start_member() {
    auto& member = members.emplace_back(std::make_unique<Member>());
    member->client.client_id = "c" + std::to_string(members.size());
    member->client.session = 10s;
    member->client.rebalance = 15s;
    member->client.known_id = pick(3) != 0;
    if (pick(4) == 0) member->client.instance_id = "i" + std::to_string(members.size());
  }

  void forget_membership(Member& member) {
    member.client.member_id.clear();
    member.client.generation = -1;
    member.doing = Doing::nothing;
    member.owns.clear();
  }

  void join(Member& member) {
    member.waits_for = send_join(member.client);
    member.doing = Doing::joining;
    member.owns.clear();  // the eager protocol: given up before the next generation
  }

  template <class Answer>
  std::optional<Answer> answered(Member& member) {
    const auto* answer = driver.answer(member.waits_for);
    if (!answer) return std::nullopt;
    if (answer->error != ErrorCode::none) return Answer{.error = answer->error};
    return taken<Answer>(member.waits_for);
  }

  void joined(Member& member) {
    auto answer = answered<JoinGroupAnswer>(member);
    if (!answer) return;
    switch (answer->error) {
      case ErrorCode::none: break;
      case ErrorCode::member_id_required:
        member.client.member_id = answer->member_id;
        return join(member);
      case ErrorCode::not_coordinator:
      case ErrorCode::coordinator_not_available:
      case ErrorCode::rebalance_in_progress: return join(member);
      case ErrorCode::unknown_member_id: return forget_membership(member);
      case ErrorCode::fenced_instance_id: member.doing = Doing::dead; return;
      default: FAIL() << "JoinGroup answered " << static_cast<int>(answer->error);
    }
    member.client.member_id = answer->member_id;
    member.client.generation = answer->generation;
    member.client.leader = answer->leader;
    member.to_assign = std::move(answer->members);
    std::vector<GroupAssignment> assignments;
    if (member.client.leads() && !answer->skip_assignment) {
      for (std::int32_t partition = 0; partition < partitions; ++partition) {
        auto& owner =
            member.to_assign[static_cast<std::size_t>(partition) % member.to_assign.size()];
        auto& given = assignments.emplace_back(GroupAssignment{owner.member_id, {}});
        given.assignment = Buffer::copy_of(std::to_string(partition) + ",");
      }
      merge(assignments);
    }
    member.waits_for = send_sync(member.client, std::move(assignments));
    member.doing = Doing::syncing;
  }

  static void merge(std::vector<GroupAssignment>& assignments) {
    std::map<std::string, std::string> by_member;
    for (const auto& one : assignments) by_member[one.member_id] += one.assignment.text();
    assignments.clear();
    for (const auto& [id, text] : by_member) assignments.push_back({id, Buffer::copy_of(text)});
  }

  void synced(Member& member) {
    const auto answer = answered<SyncGroupAnswer>(member);
    if (!answer) return;
    switch (answer->error) {
      case ErrorCode::none: break;
      case ErrorCode::unknown_member_id:
      case ErrorCode::illegal_generation: return forget_membership(member);
      case ErrorCode::fenced_instance_id: member.doing = Doing::dead; return;
      default: return join(member);
    }
    member.doing = Doing::consuming;
    member.beats = driver.now() + 3s;
    for (const char c : answer->assignment.text()) {
      if (c != ',') member.owns.push_back(c - '0');
    }
    for (const auto partition : member.owns) {
      // A static member that has come back owns what its former self did.
      const auto owner = member.client.instance_id.value_or(member.client.member_id);
      const auto [known, first] = owners.try_emplace({member.client.generation, partition}, owner);
      EXPECT_EQ(known->second, owner) << "two owners of partition " << partition
                                      << " in generation " << member.client.generation;
    }
  }

  void beat(Member& member) {
    if (driver.now() < member.beats) return;
    member.beats = driver.now() + 3s;
    after(member, heartbeat_of(member));
  }

  ErrorCode heartbeat_of(const Member& member) {
    const auto& client = member.client;
    const auto token = send(client.group, GroupHeartbeat{client.group, client.generation,
                                                         client.member_id, client.instance_id});
    const auto* reply = driver.answer_as<Reply<ErrorCode>>(token);
    return reply ? reply->value : ErrorCode::none;  // held back: it asks again
  }

  void after(Member& member, ErrorCode error) {
    switch (error) {
      case ErrorCode::rebalance_in_progress: return join(member);
      case ErrorCode::unknown_member_id:
      case ErrorCode::illegal_generation: return forget_membership(member);
      case ErrorCode::fenced_instance_id: member.doing = Doing::dead; return;
      default: return;
    }
  }

  void commit_one(Member& member) {
    if (member.owns.empty()) return;
    const auto partition = member.owns[pick(static_cast<unsigned>(member.owns.size()))];
    OffsetCommitRequest request{.group = "g",
                                .generation = member.client.generation,
                                .member_id = member.client.member_id,
                                .instance_id = member.client.instance_id};
    request.topics.push_back({{.name = "orders"}, {{.partition = partition, .offset = {++sent}}}});
    const auto token = send("g", std::move(request));
    commits.push_back({partition, sent, token});
    const auto* reply = driver.answer_as<Reply<OffsetCommitAnswer>>(token);
    if (reply) after(member, reply->value.at(0).partitions.at(0).error);
  }

  void tick() {
    for (const auto& member : members) {
      switch (member->doing) {
        case Doing::nothing: join(*member); break;
        case Doing::joining: joined(*member); break;
        case Doing::syncing: synced(*member); break;
        case Doing::consuming: beat(*member); break;
        case Doing::dead: break;
      }
    }
    std::erase_if(members, [](const auto& member) { return member->doing == Doing::dead; });
  }

  void something_happens() {
    const auto somebody = [this] {
      return members[pick(static_cast<unsigned>(members.size()))].get();
    };
    switch (pick(24)) {
      case 0:
      case 1:
        if (members.size() < 12) start_member();
        break;
      case 2:
        if (!members.empty()) somebody()->doing = Doing::dead;
        break;
      case 3:
        if (!members.empty()) {
          auto* member = somebody();
          const auto& client = member->client;
          driver.tell("g", std::make_unique<Ask>(LeaveGroupRequest{
                               "g", {{client.member_id, client.instance_id, ""}}}));
          member->doing = Doing::dead;
        }
        break;
      case 4:
        if (!members.empty()) forget_membership(*somebody());  // its process is started again
        break;
      case 5: ASSERT_TRUE(driver.reload()); break;
      case 6: ASSERT_TRUE(driver.take_snapshot()); break;
      case 7: driver.fail_appends(1 + pick(2)); break;
      case 8: driver.hold_high_watermark(); break;
      case 9:
      case 10: driver.release_high_watermark(); break;
      default:
        if (!members.empty()) {
          auto* member = somebody();
          if (member->doing == Doing::consuming) commit_one(*member);
        }
    }
  }

  struct Commit {
    std::int32_t partition;
    std::int64_t offset;
    ReplyTo token;
  };
  std::mt19937 chance;
  std::vector<std::unique_ptr<Member>> members;
  std::map<std::pair<std::int32_t, std::int32_t>, std::string> owners;
  std::vector<Commit> commits;
  std::int64_t sent = 0;
};

TEST_P(ChurnTest, OneOwnerForEachPartitionAndNoCommitIsLost) {
  chance.seed(GetParam());
  for (int step = 0; step < 600; ++step) {
    something_happens();
    tick();
    driver.advance(std::chrono::milliseconds(pick(2'000)));
  }
  driver.release_high_watermark();
  if (members.empty()) start_member();

  // Left alone it settles, in less than the longest time-outs.
  for (int step = 0; step < 120; ++step) {
    tick();
    driver.advance(500ms);
  }
  EXPECT_EQ(state(), "Stable") << "seed " << GetParam();
  std::vector<std::int32_t> owned;
  for (const auto& member : members) std::ranges::copy(member->owns, std::back_inserter(owned));
  std::ranges::sort(owned);
  EXPECT_EQ(owned, (std::vector<std::int32_t>{0, 1, 2, 3})) << "seed " << GetParam();

  // The last commit of a partition that was acknowledged, or one after it whose answer was lost.
  int acknowledged = 0;
  for (std::int32_t partition = 0; partition < partitions; ++partition) {
    std::vector<std::int64_t> possible{-1};
    for (const auto& commit : commits) {
      if (commit.partition != partition) continue;
      const auto* answer = driver.answer(commit.token);
      const auto* reply = driver.answer_as<Reply<OffsetCommitAnswer>>(commit.token);
      if (reply && reply->value.at(0).partitions.at(0).error == ErrorCode::none) {
        possible = {commit.offset};
        ++acknowledged;
      } else if (!reply && (!answer || answer->error == ErrorCode::not_coordinator)) {
        possible.push_back(commit.offset);
      }
    }
    const auto now = offset_of("g", "orders", partition);
    EXPECT_TRUE(std::ranges::find(possible, now) != possible.end())
        << "seed " << GetParam() << ": partition " << partition << " is at " << now;
  }
  EXPECT_GT(acknowledged, 0);
}

/// MILLRACE_CHURN_SEEDS: so many instead of a few.
unsigned seeds() {
  const char* wanted = std::getenv("MILLRACE_CHURN_SEEDS");
  return wanted ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : 40;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChurnTest, ::testing::Range(1U, seeds() + 1));

}  // namespace
}  // namespace millrace::consumer_groups::testing
