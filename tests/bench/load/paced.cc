#include "paced.h"

#include <cstring>
#include <mutex>
#include <thread>

namespace millrace::bench {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::nanoseconds;

struct Acknowledged {
  const Pace& pace;
  std::mutex guard;
  std::int64_t messages = 0;
  std::string failure;
  Histogram latency;
};

void count_acknowledged(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto& acknowledged = *static_cast<Acknowledged*>(opaque);
  const auto due = due_of(*message);
  const std::scoped_lock lock(acknowledged.guard);
  ++acknowledged.messages;
  if (message->err) acknowledged.failure = rd_kafka_err2str(message->err);
  if (due >= acknowledged.pace.counted_from) acknowledged.latency.add(microseconds_since(due));
}

}  // namespace

Pace::Pace(const Load& load)
    : start(Clock::now() + std::chrono::milliseconds(10)),
      counted_from(start + duration_cast<nanoseconds>(duration<double>(load.warm_up_seconds))),
      step(duration_cast<nanoseconds>(duration<double>(1 / load.per_second))),
      messages(static_cast<std::int64_t>(load.per_second * load.seconds)) {}

void wait_until(Clock::time_point due) { std::this_thread::sleep_until(due); }

void send_paced(rd_kafka_t* client, rd_kafka_topic_t* topic, const Pace& pace, std::string value) {
  for (std::int64_t sent = 0; sent < pace.messages;) {
    const auto due = pace.due(sent);
    rd_kafka_poll(client, 0);
    wait_until(due);
    const auto stamp = due.time_since_epoch().count();
    std::memcpy(value.data(), &stamp, sizeof stamp);
    const auto refused = rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
                                          value.data(), value.size(), nullptr, 0, nullptr);
    if (!refused) ++sent;
  }
}

Clock::time_point due_of(const rd_kafka_message_t& message) {
  Clock::rep stamp = 0;
  std::memcpy(&stamp, message.payload, sizeof stamp);
  return Clock::time_point{Clock::duration(stamp)};
}

std::int64_t microseconds_since(Clock::time_point due) {
  return duration_cast<std::chrono::microseconds>(Clock::now() - due).count();
}

Figures produce_paced(const Load& load) {
  const Pace pace(load);
  Acknowledged acknowledged{.pace = pace};
  const auto client = make_producer(load, {{"acks", load.acks}, {"linger.ms", "0"}},
                                    &count_acknowledged, &acknowledged);
  const Topic topic(rd_kafka_topic_new(client.get(), load.topic.c_str(), nullptr));
  {
    const std::jthread listener([&client](const std::stop_token& ending) {
      while (!ending.stop_requested()) rd_kafka_poll(client.get(), 10);
    });
    send_paced(client.get(), topic.get(), pace, make_text(load.message_bytes));
    if (rd_kafka_flush(client.get(), 20'000)) throw LoadFailed("messages were not acknowledged");
  }
  if (!acknowledged.failure.empty()) throw LoadFailed("a message: " + acknowledged.failure);
  return {acknowledged.messages,
          acknowledged.messages * static_cast<std::int64_t>(load.message_bytes), load.seconds,
          acknowledged.latency};
}

}  // namespace millrace::bench
