// /admin/aggregates from request to answer.
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server_fixture.h"

namespace millrace::http_transport::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class AggregatesTest : public ServerFixture {
 protected:
  /// "200 {…}"
  std::string result(std::string_view method, std::string_view path, std::string_view body = {}) {
    if (!server) start();
    const auto fields = body.empty() ? "Host: localhost\r\n"
                                     : "Host: localhost\r\nContent-Type: application/json\r\n";
    const auto answer = ask(method, path, body, fields);
    auto text = body_of(answer);
    if (text.ends_with('\n')) text.pop_back();
    return std::to_string(status_of(answer)) + ' ' + text;
  }
};

TEST_F(AggregatesTest, ACommandIsAnsweredWithTextAndHeaders) {
  EXPECT_EQ(result("POST", "/admin/aggregates/accounts/al%2Fice",
                   R"({"command":"deposit 5","headers":{"millrace-expected-version":3}})"),
            R"(200 {"answer":"accounts al/ice deposit 5 v3","headers":{"millrace-version":"4"}})");
  EXPECT_EQ(result("POST", "/admin/aggregates/accounts/alice", R"({"command":"look"})"),
            R"(200 {"answer":"accounts alice look v","headers":{"millrace-version":"4"}})");
}

TEST_F(AggregatesTest, AQueryIsAnsweredLikewise) {
  EXPECT_EQ(result("GET", "/admin/aggregates/accounts/alice"),
            R"(200 {"answer":"accounts alice","headers":{}})");
}

TEST_F(AggregatesTest, ARefusalHasItsNameAndItsReason) {
  broker.aggregates.error = ErrorCode::invalid_update_version;
  EXPECT_EQ(result("POST", "/admin/aggregates/accounts/alice", R"({"command":"look"})"),
            R"(409 {"error":"INVALID_UPDATE_VERSION","message":"refused"})");
  broker.aggregates.error = ErrorCode::resource_not_found;
  EXPECT_THAT(result("GET", "/admin/aggregates/accounts/alice"), StartsWith("404 "));
  broker.aggregates.error = ErrorCode::coordinator_load_in_progress;
  EXPECT_THAT(result("GET", "/admin/aggregates/accounts/alice"), StartsWith("503 "));
}

TEST_F(AggregatesTest, OneThatIsNotThereIsNotFoundAndOneThatIsNotReadyIsToBeAskedAgain) {
  broker.aggregates.error = ErrorCode::coordinator_not_available;
  EXPECT_EQ(
      result("GET", "/admin/aggregates/nope/k"),
      R"(404 {"error":"not_found","message":"there is no aggregate nope; there are accounts"})");
  EXPECT_THAT(result("POST", "/admin/aggregates/nope/k", R"({"command":"look"})"),
              StartsWith("404 "));
  EXPECT_THAT(result("GET", "/admin/aggregates/accounts/k"), StartsWith("503 "));
  EXPECT_THAT(result("POST", "/admin/aggregates/accounts/k", R"({"command":"look"})"),
              StartsWith("503 "));
}

TEST_F(AggregatesTest, WhatIsNoTextIsNotShown) {
  broker.aggregates.own_types = true;
  EXPECT_THAT(result("GET", "/admin/aggregates/groups/x"), StartsWith(R"(409 {"error":"no_text")"));
}

TEST_F(AggregatesTest, ABodyThatIsWrongIsToldSo) {
  const auto* path = "/admin/aggregates/accounts/alice";
  EXPECT_THAT(result("POST", path, "{}"), HasSubstr("command: expected a text, found nothing"));
  EXPECT_THAT(result("POST", path, R"({"command":1})"), StartsWith("400 "));
  EXPECT_THAT(result("POST", path, R"({"command":"x","header":{}})"), StartsWith("400 "));
  EXPECT_THAT(result("POST", path, R"({"command":"x","headers":{"a":[]}})"), StartsWith("400 "));
}

TEST_F(AggregatesTest, AreListedAndReplaced) {
  const std::string before =
      R"({"name":"accounts","topic":"accounts","plugin":"org.example.bank","version":"2",)"
      R"("path":"/p/bank.so","starts_from":"/p/bank.so","partitions":3,"serving":3})";
  EXPECT_EQ(result("GET", "/admin/aggregates"), "200 {\"aggregates\":[" + before + "]}");
  const auto replaced = result("PATCH", "/admin/aggregates/accounts", R"({"file":"/new/bank.so"})");
  EXPECT_THAT(replaced, HasSubstr(R"("path":"/new/bank.so","starts_from":"/p/bank.so")"));
  EXPECT_THAT(replaced, HasSubstr(R"("brokers":[{"id":1,"replaced":true},{"id":2,"replaced":false,)"
                                  R"("reason":"/new/bank.so: there is no such file"},)"
                                  R"({"id":3,"replaced":true}])"));
  EXPECT_EQ(broker.aggregate_admin.file, "/new/bank.so");
  EXPECT_THAT(result("PATCH", "/admin/aggregates/accounts", "{}"), HasSubstr("file: expected"));
  EXPECT_THAT(result("PATCH", "/admin/aggregates/accounts", R"({"file":"/a","kept":true})"),
              StartsWith("400 "));
}

TEST_F(AggregatesTest, AReplacementThatIsRefusedSaysWhy) {
  for (const auto& [code, status] :
       {std::pair(Errc::not_found, "404"), std::pair(Errc::conflict, "409"),
        std::pair(Errc::invalid_argument, "400"), std::pair(Errc::internal, "500")}) {
    broker.replacements.not_replaced = Error{code, "as the test says"};
    const auto refused = result("PATCH", "/admin/aggregates/accounts", R"({"file":"/a"})");
    EXPECT_THAT(refused, StartsWith(status));
    EXPECT_THAT(refused, HasSubstr("as the test says"));
  }
}

TEST_F(AggregatesTest, WithoutTheServiceNothingIsThere) {
  broker.with_aggregates = false;
  EXPECT_THAT(result("GET", "/admin/aggregates/a/b"), StartsWith(R"(404 {"error":"not_loaded")"));
  EXPECT_THAT(result("GET", "/admin/aggregates"), StartsWith(R"(404 {"error":"not_loaded")"));
  EXPECT_THAT(result("PATCH", "/admin/aggregates/a", R"({"file":"/a"})"),
              StartsWith(R"(404 {"error":"not_loaded")"));
  EXPECT_THAT(result("POST", "/admin/aggregates/a/b", R"({"command":"x"})"),
              StartsWith(R"(404 {"error":"not_loaded")"));
}

TEST_F(AggregatesTest, WhatIsNotUtf8IsReplacedSoThatTheAnswerIsJson) {
  EXPECT_EQ(result("GET", "/admin/aggregates/accounts/a%ffb%c3%a4%ed%a0%80%f0%9f"),
            "200 {\"answer\":\"accounts a\xef\xbf\xbd"
            "b\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\","
            "\"headers\":{}}");
  EXPECT_EQ(result("GET", "/admin/aggregates/accounts/%ef%bf%bd%f0%9f%98%80"),
            "200 {\"answer\":\"accounts \xef\xbf\xbd\xf0\x9f\x98\x80\",\"headers\":{}}");
}

}  // namespace
}  // namespace millrace::http_transport::testing
