#include <millrace/kafka/client.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error_code.h>
#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/frame_reader.h>
#include <millrace/kafka/heartbeat.h>
#include <millrace/kafka/metadata.h>
#include <millrace/shard.h>

namespace millrace::kafka {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A shard whose loop runs when told to, and whose time passes then.
class LoopShard final : public Shard {
 public:
  unsigned index() const noexcept override { return 0; }
  MonoTime now() const noexcept override { return now_; }
  bool is_current() const noexcept override { return true; }
  void post(Job job) override { jobs_.push_back(std::move(job)); }
  void resume_soon(std::coroutine_handle<> waiting) override {
    jobs_.push_back([waiting] { waiting.resume(); });
  }
  TimerId schedule(MonoTime when, Job job) override {
    timers_.emplace(++last_timer_, std::pair{when, std::move(job)});
    return TimerId{last_timer_};
  }
  void unschedule(TimerId timer) noexcept override {
    timers_.erase(static_cast<std::uint64_t>(timer));
  }
  void report(std::string_view, const Error& error) noexcept override {
    ADD_FAILURE() << error.detail;
  }
  void run() {
    while (!jobs_.empty()) {
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
    }
  }
  void pass(Duration time) {
    now_ += time;
    for (auto at = timers_.begin(); at != timers_.end();) {
      if (at->second.first > now_) {
        ++at;
        continue;
      }
      jobs_.push_back(std::move(at->second.second));
      at = timers_.erase(at);
    }
    run();
  }
  std::size_t timers() const { return timers_.size(); }

 private:
  MonoTime now_;
  std::deque<Job> jobs_;
  std::map<std::uint64_t, std::pair<MonoTime, Job>> timers_;
  std::uint64_t last_timer_ = 0;
};

/// The broker's end of one connection: sees requests, answers when the test says so.
struct FakeBroker {
  FrameReader reader{1 << 20};
  std::vector<RequestHead> requests;
  int sends = 0;
  std::string unread;  // by the client
  bool closed = false;
  Resolver<std::size_t> receiving;
  MutableBytes space;

  void take(const Payload& payload) {
    ++sends;
    const auto bytes = payload.flatten();
    std::memcpy(reader.space().data(), bytes->data(), bytes->size());
    reader.filled(bytes->size());
    for (auto frame = reader.next(); *frame; frame = reader.next()) {
      requests.push_back(*decode_request_head(**frame));
    }
  }
  void give(std::string_view bytes) {
    unread += bytes;
    pump();
  }
  template <class Response>
  void answer(const RequestHead& request, const Response& response, std::int16_t version) {
    const auto payload = encode_response(version, request.correlation_id, response);
    give(payload->flatten()->text());
  }
  template <class Response>
  void answer(const RequestHead& request, const Response& response) {
    answer(request, response, request.version);
  }
  void pump() {
    if (!receiving || (unread.empty() && !closed)) return;
    const auto size = std::min(unread.size(), space.size());
    std::memcpy(space.data(), unread.data(), size);
    unread.erase(0, size);
    receiving.resolve(size);
  }
};

class FakeStream final : public Stream {
 public:
  explicit FakeStream(std::shared_ptr<FakeBroker> broker) : broker_(std::move(broker)) {}
  Task<std::size_t> receive(MutableBytes space) override {
    auto [resolver, pending] = make_pending<std::size_t>();
    broker_->receiving = std::move(resolver);
    broker_->space = space;
    broker_->pump();
    co_return co_await pending;
  }
  Task<> send(Payload payload) override {
    auto [resolver, pending] = make_pending<>();
    Shard& shard = co_await this_shard();
    shard.post([done = std::move(resolver)]() mutable { done.resolve(); });
    MR_CO_CHECK(co_await pending);
    broker_->take(payload);
    co_return {};
  }
  void close() noexcept override {
    broker_->closed = true;
    if (broker_->receiving) broker_->receiving.resolve(Error{Errc::closed, "closed"});
  }
  const Address& peer() const noexcept override { return address_; }

 private:
  std::shared_ptr<FakeBroker> broker_;
  Address address_{"broker", 9092};
};

class FakeNetwork final : public Network {
 public:
  explicit FakeNetwork(std::shared_ptr<FakeBroker> broker) : broker_(std::move(broker)) {}
  Task<std::unique_ptr<Listener>> listen(Address) override {
    co_return Error{Errc::unsupported, ""};
  }
  Task<std::unique_ptr<Stream>> connect(Address) override {
    co_return std::make_unique<FakeStream>(broker_);
  }

 private:
  std::shared_ptr<FakeBroker> broker_;
};

class ClientTest : public testing::Test {
 protected:
  void TearDown() override {
    connected = Error{Errc::closed, "the test is over"};
    shard.run();
  }
  ApiVersionsResponse offer(std::int16_t api_versions_max) {
    ApiVersionsResponse response;
    response.api_keys.push_back({.api_key = 3, .min_version = 4, .max_version = 9});
    response.api_keys.push_back({.api_key = 12, .min_version = 100, .max_version = 101});
    response.api_keys.push_back({.api_key = 18, .max_version = api_versions_max});
    return response;
  }
  void start_connecting() {
    const auto connect = [](ClientTest* test) -> Task<> {
      test->connected = co_await Client::connect(test->network, {"broker", 9092}, test->options);
      co_return {};
    };
    spawn(shard, connect(this), "connect");
    shard.run();
  }
  Client& connect() {
    start_connecting();
    broker->answer(broker->requests.at(0), offer(5));
    shard.run();
    broker->requests.clear();
    broker->sends = 0;
    EXPECT_TRUE(connected) << connected.error().detail;
    return **connected;
  }
  template <class Request>
  void call(Client& client, Request request,
            std::function<void(Result<typename Request::Response>)> then,
            CancelScope* scope = nullptr) {
    const auto run = [](Client* to, Request what, decltype(then) use) -> Task<> {
      auto result = co_await to->call(std::move(what));
      use(std::move(result));
      co_return {};
    };
    spawn(shard, run(&client, std::move(request), std::move(then)), "call", scope);
    shard.run();
  }

  LoopShard shard;
  ClientOptions options;
  std::shared_ptr<FakeBroker> broker = std::make_shared<FakeBroker>();
  FakeNetwork network{broker};
  Result<std::unique_ptr<Client>> connected = Error{Errc::internal, "not connected"};
};

TEST_F(ClientTest, SpeaksTheNewestVersionThatBothKnow) {
  auto& client = connect();
  EXPECT_EQ(client.version_of(ApiKey::metadata), 9);
  const auto none_shared = client.version_of(ApiKey::heartbeat);
  ASSERT_FALSE(none_shared);
  EXPECT_THAT(none_shared.error().detail, HasSubstr("100 to 101"));
  EXPECT_EQ(client.version_of(ApiKey::produce).error().code, Errc::unsupported);
}

TEST_F(ClientTest, FollowsABrokerThatKnowsAnOlderApiVersions) {
  start_connecting();
  ASSERT_EQ(broker->requests.size(), 1U);
  auto refusal = offer(2);
  refusal.error_code = static_cast<std::int16_t>(ErrorCode::unsupported_version);
  broker->answer(broker->requests[0], refusal, 0);
  shard.run();
  ASSERT_EQ(broker->requests.size(), 2U);
  EXPECT_EQ(broker->requests[1].version, 2);
  broker->answer(broker->requests[1], offer(2));
  shard.run();
  EXPECT_TRUE(connected);
}

TEST_F(ClientTest, PipelinesCallsAndGathersWhatWaitsToBeSent) {
  auto& client = connect();
  std::vector<std::string> answers;
  const auto add = [&](const Result<MetadataResponse>& result) {
    answers.emplace_back(*result->cluster_id);
  };
  const auto run = [](Client* to, decltype(add)* use) -> Task<> {
    MetadataRequest request;
    const auto result = co_await to->call(std::move(request));
    (*use)(result);
    co_return {};
  };
  for (int i = 0; i < 3; ++i) spawn(shard, run(&client, &add), "call");
  shard.run();
  ASSERT_EQ(broker->requests.size(), 3U);
  EXPECT_EQ(broker->sends, 2);  // one, and the two that came while it was under way
  for (const char* id : {"a", "b", "c"}) {
    MetadataResponse response;
    response.cluster_id = id;
    broker->answer(broker->requests[answers.size()], response);
    shard.run();
  }
  EXPECT_THAT(answers, ElementsAre("a", "b", "c"));
}

TEST_F(ClientTest, DropsTheAnswerOfACancelledCall) {
  auto& client = connect();
  CancelScope scope;
  Result<MetadataResponse> first;
  Result<MetadataResponse> second = Error{Errc::internal, ""};
  call(client, MetadataRequest{}, [&](auto result) { first = std::move(result); }, &scope);
  call(client, MetadataRequest{}, [&](auto result) { second = std::move(result); });
  scope.cancel();
  shard.run();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, Errc::cancelled);
  for (const auto& request : broker->requests) broker->answer(request, MetadataResponse{});
  shard.run();
  EXPECT_TRUE(second);
  EXPECT_TRUE(client.status());
}

TEST_F(ClientTest, CallsInFlightEndWithTheConnection) {
  auto& client = connect();
  Result<MetadataResponse> result;
  call(client, MetadataRequest{}, [&](auto answer) { result = std::move(answer); });
  broker->closed = true;
  broker->pump();
  shard.run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::closed);
  EXPECT_THAT(result.error().detail, HasSubstr("broker:9092 closed the connection"));
  call(client, MetadataRequest{}, [&](auto answer) { result = std::move(answer); });
  EXPECT_EQ(result.error().code, Errc::closed);
}

TEST_F(ClientTest, ABrokerThatDoesNotAnswerIsGivenUpAfterAWhile) {
  options.answer_within = std::chrono::seconds(5);
  auto& client = connect();
  shard.pass(std::chrono::seconds(60));
  ASSERT_TRUE(client.status());  // nothing was asked meanwhile
  Result<MetadataResponse> first = Error{Errc::internal, "waits"};
  Result<MetadataResponse> second = Error{Errc::internal, "waits"};
  call(client, MetadataRequest{}, [&](auto answer) { first = std::move(answer); });
  shard.pass(std::chrono::seconds(4));
  call(client, MetadataRequest{}, [&](auto answer) { second = std::move(answer); });
  broker->answer(broker->requests.at(0), MetadataResponse{});
  shard.run();
  EXPECT_TRUE(first);
  shard.pass(std::chrono::seconds(4));
  EXPECT_EQ(second.error().code, Errc::internal);
  shard.pass(std::chrono::seconds(1));
  EXPECT_EQ(second.error().code, Errc::timed_out);
  EXPECT_THAT(second.error().detail, HasSubstr("broker:9092 has not answered for 5 s"));
  EXPECT_FALSE(client.status());
  EXPECT_EQ(shard.timers(), 0U);
}

TEST_F(ClientTest, ACallOutlivesItsClient) {
  auto& client = connect();
  Result<MetadataResponse> result;
  call(client, MetadataRequest{}, [&](auto answer) { result = std::move(answer); });
  connected = Error{Errc::internal, "gone"};
  shard.run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::closed);
}

TEST_F(ClientTest, AnAnswerOutOfOrderEndsTheConnection) {
  auto& client = connect();
  Result<MetadataResponse> result;
  call(client, MetadataRequest{}, [&](auto answer) { result = std::move(answer); });
  auto other = broker->requests.at(0);
  other.correlation_id += 1;
  broker->answer(other, MetadataResponse{});
  shard.run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::corrupt);
  EXPECT_FALSE(client.status());
}

}  // namespace
}  // namespace millrace::kafka
