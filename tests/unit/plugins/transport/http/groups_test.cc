// /admin/groups from request to answer.
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server_fixture.h"

namespace millrace::http_transport::testing {
namespace {

using namespace std::string_view_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class GroupsTest : public ServerFixture {
 protected:
  /// "200 {…}"
  std::string result(std::string_view method, std::string_view path) {
    if (!server) start();
    const auto answer = ask(method, path);
    auto text = body_of(answer);
    if (text.ends_with('\n')) text.pop_back();
    return std::to_string(status_of(answer)) + ' ' + text;
  }
};

TEST_F(GroupsTest, ListsThemWithStateAndType) {
  broker.groups.listed.push_back({"readers", "consumer", "Stable", "classic"});
  EXPECT_EQ(result("GET", "/admin/groups"),
            R"(200 {"groups":[{"group":"readers","state":"Stable","type":"classic",)"
            R"("protocol_type":"consumer"}]})");
}

TEST_F(GroupsTest, ShowsAClassicGroupWithMembersAndLag) {
  broker.topics = {{"orders", 2}};
  GroupDescribed::Member member;
  member.member_id = "m-1";
  member.client_id = "app";
  member.client_host = "/192.0.2.7";
  member.assignment = Buffer::copy_of("\0\0\0\0\0\1\0\6orders\0\0\0\1\0\0\0\1\xff\xff\xff\xff"sv);
  auto& group = broker.groups.classic.emplace_back();
  group.group = "readers";
  group.state = "Stable";
  group.protocol_type = "consumer";
  group.protocol = "range";
  group.members.push_back(member);
  broker.groups.committed.topics.push_back(
      {{"orders", {}},
       {{.partition = 0, .offset = {25}, .leader_epoch = {}, .metadata = "note"},
        {.partition = 1, .offset = {-1}, .leader_epoch = {}, .metadata = {}}}});
  broker.groups.committed.topics.push_back(
      {{"gone", {}}, {{.partition = 7, .offset = {3}, .leader_epoch = {}, .metadata = {}}}});
  EXPECT_EQ(
      result("GET", "/admin/groups/readers"),
      R"(200 {"group":"readers","type":"classic","state":"Stable","protocol_type":"consumer",)"
      R"("assignor":"range","members":[{"member_id":"m-1","instance_id":null,"client_id":"app",)"
      R"("host":"/192.0.2.7","partitions":[{"topic":"orders","partition":1}]}],)"
      R"("offsets":[{"topic":"orders","partition":0,"committed":25,"metadata":"note","end":30,)"
      R"("lag":5},{"topic":"gone","partition":7,"committed":3,"metadata":""}]})");
}

TEST_F(GroupsTest, ShowsAConsumerGroupWithItsEpochs) {
  auto& group = broker.groups.consumer.emplace_back();
  group.group = "newer";
  group.state = "Stable";
  group.group_epoch = 5;
  group.assignor = "uniform";
  auto& member = group.members.emplace_back();
  member.member_id = "m-1";
  member.instance_id = "static-1";
  member.member_epoch = 5;
  member.assignment.topics.push_back({{}, "orders", {1, 0}});
  const auto shown = result("GET", "/admin/groups/newer");
  EXPECT_THAT(shown, HasSubstr(R"("type":"consumer","state":"Stable","epoch":5)"));
  EXPECT_THAT(shown, HasSubstr(R"("instance_id":"static-1")"));
  EXPECT_THAT(shown, HasSubstr(R"([{"topic":"orders","partition":0},{"topic":"orders",)"
                               R"("partition":1}],"epoch":5})"));
}

TEST_F(GroupsTest, DeletesOne) {
  EXPECT_EQ(result("DELETE", "/admin/groups/a%2Fb"), R"(200 {"deleted":"a/b"})");
  EXPECT_THAT(broker.groups.removed, ElementsAre("a/b"));
}

TEST_F(GroupsTest, TellsWhatIsWrong) {
  EXPECT_EQ(result("GET", "/admin/groups/none"),
            R"(404 {"error":"GROUP_ID_NOT_FOUND","message":"there is no group none"})");
  broker.groups.error = ErrorCode::non_empty_group;
  EXPECT_THAT(result("DELETE", "/admin/groups/readers"),
              StartsWith(R"(409 {"error":"NON_EMPTY_GROUP")"));
  broker.groups.error = ErrorCode::coordinator_load_in_progress;
  EXPECT_THAT(result("GET", "/admin/groups"),
              StartsWith(R"(503 {"error":"COORDINATOR_LOAD_IN_PROGRESS")"));
  EXPECT_THAT(result("PATCH", "/admin/groups/readers"), StartsWith("405 "));
}

TEST_F(GroupsTest, TellsThatNoPluginOffersThem) {
  broker.with_groups = false;
  EXPECT_THAT(result("GET", "/admin/groups"), StartsWith(R"(404 {"error":"not_loaded")"));
  EXPECT_THAT(result("GET", "/admin/groups/x"), StartsWith(R"(404 {"error":"not_loaded")"));
  EXPECT_THAT(result("DELETE", "/admin/groups/x"), StartsWith(R"(404 {"error":"not_loaded")"));
}

}  // namespace
}  // namespace millrace::http_transport::testing
