// Requests of real clients, as a proxy between them and Kafka saw them, sent to our connections.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/bytes.h>
#include <millrace/kafka/message_info.h>

#include "group_fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

struct GoldenRequest {
  std::int64_t connection = 0;
  std::int16_t key = 0;
  std::int16_t version = 0;
  std::string api;
  std::string frame;
};

std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes.push_back(static_cast<char>(digit(hex[at]) * 16 + digit(hex[at + 1])));
  }
  return bytes;
}

/// The requests of a session that Kafka could parse and that are for an API of ours.
std::vector<GoldenRequest> requests_of(const std::filesystem::path& session, const ApiSet& apis) {
  std::vector<GoldenRequest> requests;
  std::ifstream lines(session);
  for (std::string line; std::getline(lines, line);) {
    const auto event = boost::json::parse(line).as_object();
    if (event.at("dir").as_string() != "req" || !event.contains("json")) continue;
    GoldenRequest request;
    request.connection = event.at("conn").as_int64();
    request.key = static_cast<std::int16_t>(event.at("key").as_int64());
    request.version = static_cast<std::int16_t>(event.at("version").as_int64());
    request.api = event.at("api").as_string();
    request.frame = from_hex(event.at("hex").as_string());
    if (apis.find(request.key, request.version)) requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<std::filesystem::path> sessions() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(MILLRACE_GOLDEN_DIR "/sessions")) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

class SessionsTest : public GroupsFixture,
                     public ::testing::WithParamInterface<std::filesystem::path> {};

TEST_P(SessionsTest, EveryRequestIsAnsweredInItsVersion) {
  settings.requests_in_flight_max = 100'000;
  settings.answer_bytes_pending_max = 1 << 30;
  settings.idle_max = Duration::zero();
  broker.metadata_answer.cluster_id = "MkU3OEVBNTcwNTJENDM2Qg";
  connect();
  const auto requests = requests_of(GetParam(), apis);
  for (const auto& request : requests) {
    SCOPED_TRACE(request.api + " version " + std::to_string(request.version));
    const auto produced = broker.produces.size();
    const auto before = wire.answers().size();
    std::string size(4, '\0');
    store_be(reinterpret_cast<std::byte*>(size.data()),
             static_cast<std::int32_t>(request.frame.size()));
    push(size + request.frame);
    ASSERT_FALSE(wire.closed) << log.warnings().back();
    const bool silent =
        broker.produces.size() > produced && broker.produces.back().request.acks == 0;
    ASSERT_EQ(wire.answers().size(), before + (silent ? 0 : 1));
    if (silent) continue;

    const auto answer = wire.answers().back();
    const auto correlation_id =
        load_be<std::int32_t>(reinterpret_cast<const std::byte*>(request.frame.data()) + 4);
    EXPECT_EQ(answered().back(), correlation_id);
    const auto* api = kafka::find_api(request.key);
    const auto head_bytes = 4 + (api->response_header_version(request.version) == 1 ? 1U : 0U);
    const auto* response = kafka::find_message(request.api + "Response");
    ASSERT_NE(response, nullptr);
    const auto readable = response->check(answer.slice(head_bytes), request.version);
    EXPECT_TRUE(readable) << to_string(readable.error());
  }
}

INSTANTIATE_TEST_SUITE_P(All, SessionsTest, ::testing::ValuesIn(sessions()), [](const auto& info) {
  auto name = info.param.stem().string();
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace millrace::kafka_transport::testing
