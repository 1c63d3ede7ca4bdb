#include "plugins/transport/http/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::http_transport {
namespace {

using ::testing::ElementsAre;

Task<HttpResponse> first(Exchange&) { co_return HttpResponse{}; }
Task<HttpResponse> second(Exchange&) { co_return HttpResponse{}; }

constexpr Route routes[] = {
    {"/topics", "GET", first},
    {"/topics", "POST", second},
    {"/topics/NAME", "GET", first},
    {"/topics/NAME/configs/KEY", "DELETE", second},
};

std::variant<Found, HttpResponse> find(std::string method, std::string path) {
  return find_route(routes, {.method = std::move(method), .path = std::move(path)});
}

TEST(RoutesTest, PathAndMethodDecide) {
  EXPECT_EQ(std::get<Found>(find("GET", "/topics")).handler, &first);
  EXPECT_EQ(std::get<Found>(find("HEAD", "/topics")).handler, &first);
  EXPECT_EQ(std::get<Found>(find("POST", "/topics")).handler, &second);
}

TEST(RoutesTest, OpenSegmentsAreArguments) {
  EXPECT_THAT(std::get<Found>(find("GET", "/topics/a%2Fb%c3%a9")).arguments,
              ElementsAre("a/b\xc3\xa9"));
  EXPECT_THAT(std::get<Found>(find("DELETE", "/topics/x/configs/y.z")).arguments,
              ElementsAre("x", "y.z"));
  EXPECT_THAT(std::get<Found>(find("GET", "/topics/100%25%")).arguments, ElementsAre("100%%"));
  EXPECT_THAT(std::get<Found>(find("GET", "/topics/%zz%4")).arguments, ElementsAre("%zz%4"));
}

TEST(RoutesTest, AnUnknownPathIsToldAllOfThem) {
  for (const auto* path : {"/", "/topic", "/topics/a/b", "/topics/a/", "*", "", "topics"}) {
    const auto response = std::get<HttpResponse>(find("GET", path));
    EXPECT_EQ(response.status, 404U) << path;
    EXPECT_NE(
        response.body.find(R"("paths":["/topics","/topics/NAME","/topics/NAME/configs/KEY"])"),
        std::string::npos)
        << response.body;
  }
}

TEST(RoutesTest, AWrongMethodIsToldWhatIsAllowed) {
  const auto response = std::get<HttpResponse>(find("DELETE", "/topics"));
  EXPECT_EQ(response.status, 405U);
  EXPECT_EQ(response.allow, "GET, HEAD, POST");
}

}  // namespace
}  // namespace millrace::http_transport
