#include "plugins/transport/kafka/settings.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kafka_transport {
namespace {

using ::testing::HasSubstr;

Options options(std::string listen, std::string advertise, std::int64_t idle_ms = 600000) {
  return Options({{"listen", std::move(listen)},
                  {"advertise", std::move(advertise)},
                  {"connections.max.idle.ms", idle_ms},
                  {"socket.request.max.bytes", std::int64_t{104857600}},
                  {"max.connections", std::int64_t{10}},
                  {"requests.in.flight.max", std::int64_t{64}},
                  {"answers.pending.max.bytes", std::int64_t{1000}}});
}

std::string reason(std::string listen, std::string advertise) {
  const auto settings = read_settings(options(std::move(listen), std::move(advertise)));
  return settings ? "accepted" : to_string(settings.error());
}

TEST(KafkaSettingsTest, AdvertisesTheAddressListenedOnUnlessToldOtherwise) {
  const auto plain = read_settings(options("127.0.0.1:0", ""));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->advertise, (Address{"127.0.0.1", 0}));
  const auto told = read_settings(options("0.0.0.0:9092", "broker.example:19092"));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->listen, (Address{"0.0.0.0", 9092}));
  EXPECT_EQ(told->advertise, (Address{"broker.example", 19092}));
}

TEST(KafkaSettingsTest, AsksForAnAddressThatClientsCanReach) {
  EXPECT_THAT(reason("0.0.0.0:9092", ""), HasSubstr("set advertise"));
  EXPECT_THAT(reason("[::]:9092", ""), HasSubstr("set advertise"));
  EXPECT_THAT(reason("127.0.0.1:9092", "0.0.0.0:9092"), HasSubstr("set advertise"));
}

TEST(KafkaSettingsTest, NamesTheOptionThatIsNoAddress) {
  EXPECT_THAT(reason("9092", ""), HasSubstr("listen: '9092' is not an address"));
  EXPECT_THAT(reason("127.0.0.1:9092", "broker"), HasSubstr("advertise: 'broker'"));
}

TEST(KafkaSettingsTest, MinusOneKeepsIdleConnections) {
  EXPECT_EQ(read_settings(options("127.0.0.1:0", "", -1))->idle_max, Duration::zero());
  EXPECT_EQ(read_settings(options("127.0.0.1:0", "", 5))->idle_max, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace millrace::kafka_transport
