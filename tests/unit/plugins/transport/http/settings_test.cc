#include "plugins/transport/http/settings.h"

#include <chrono>

#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>

namespace millrace::http_transport {
namespace {

using namespace std::chrono_literals;

TEST(SettingsTest, DefaultsKeepItOnThisMachine) {
  const auto settings = read_settings(Options(testing::defaults_of(declared_options)));
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->listen, (Address{"127.0.0.1", 9644}));
  EXPECT_TRUE(settings->hosts.empty());
  EXPECT_EQ(settings->connections_max, 64U);
  EXPECT_EQ(settings->idle_max, 60s);
  EXPECT_EQ(settings->request_max, 10s);
  EXPECT_EQ(settings->body_bytes_max, 1U << 20);
  EXPECT_EQ(settings->partition_series_max, 10'000U);
}

TEST(SettingsTest, ABadAddressIsNamed) {
  auto values = testing::defaults_of(declared_options);
  values["listen"] = std::string("9644");
  const auto settings = read_settings(Options(values));
  ASSERT_FALSE(settings);
  EXPECT_TRUE(settings.error().detail.starts_with("listen: '9644'")) << settings.error().detail;
}

}  // namespace
}  // namespace millrace::http_transport
