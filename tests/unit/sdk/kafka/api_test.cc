#include <millrace/kafka/api.h>

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace millrace::kafka {
namespace {

TEST(ApiTest, HeaderVersionsAreKafkas) {
  std::ifstream file(MILLRACE_GOLDEN_DIR "/protocol/header-versions.tsv");
  std::string line;
  std::getline(file, line);  // column names
  int rows = 0;
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::int16_t key = 0;
    std::string name;
    std::int16_t version = 0;
    std::int16_t request_header = 0;
    std::int16_t response_header = 0;
    row >> key >> name >> version >> request_header >> response_header;
    const auto* api = find_api(key);
    ASSERT_NE(api, nullptr) << line;
    EXPECT_TRUE(api->known.contains(version)) << line;
    EXPECT_EQ(api->request_header_version(version), request_header) << line;
    EXPECT_EQ(api->response_header_version(version), response_header) << line;
    ++rows;
  }
  EXPECT_GT(rows, 300);
}

TEST(ApiTest, KeysAreFoundAndOthersAreNot) {
  EXPECT_EQ(find_api(1)->name, "Fetch");
  EXPECT_EQ(info_of(ApiKey::api_versions).name, "ApiVersions");
  EXPECT_EQ(find_api(-1), nullptr);
  EXPECT_EQ(find_api(1000), nullptr);
  for (const auto& api : api_table()) EXPECT_EQ(&info_of(api.key), &api);
}

TEST(ApiTest, EarlyAccessVersionsAreKnownButNotServed) {
  const auto& share_fetch = info_of(ApiKey::share_fetch);
  EXPECT_TRUE(share_fetch.known.contains(0));
  EXPECT_FALSE(share_fetch.served.contains(0));
}

}  // namespace
}  // namespace millrace::kafka
