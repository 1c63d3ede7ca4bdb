#include <atomic>
#include <cstring>
#include <thread>

#include "rdkafka.h"

namespace millrace::bench {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

struct Pace {
  Clock::time_point start;
  nanoseconds step;
  std::int64_t messages;

  Clock::time_point due(std::int64_t message) const { return start + message * step; }
};

/// Sends message `n` when it is due; what is sent carries the time that it was due at.
void send_paced(rd_kafka_t* client, rd_kafka_topic_t* topic, const Pace& pace, std::string value) {
  for (std::int64_t sent = 0; sent < pace.messages;) {
    const auto due = pace.due(sent);
    rd_kafka_poll(client, 0);
    std::this_thread::sleep_until(due);
    const auto stamp = due.time_since_epoch().count();
    std::memcpy(value.data(), &stamp, sizeof stamp);
    const auto refused = rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
                                          value.data(), value.size(), nullptr, 0, nullptr);
    if (!refused) ++sent;
  }
}

/// Reads until every partition's end is reached, so that the consumer waits there when sending
/// starts.
void wait_for_ends(rd_kafka_t* consumer, int partitions) {
  for (int reached = 0; reached < partitions;) {
    const Message message(rd_kafka_consumer_poll(consumer, 10'000));
    if (!message) throw LoadFailed("the consumer did not reach the end of its partitions in 10 s");
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) ++reached;
  }
}

}  // namespace

Figures end_to_end(const Load& load) {
  const auto consumer = make_consumer(
      load,
      {{"fetch.min.bytes", "1"}, {"fetch.wait.max.ms", "500"}, {"enable.partition.eof", "true"}},
      RD_KAFKA_OFFSET_END);
  const auto producer =
      make_producer(load, {{"acks", load.acks}, {"linger.ms", "0"}}, nullptr, nullptr);
  const Topic topic(rd_kafka_topic_new(producer.get(), load.topic.c_str(), nullptr));
  wait_for_ends(consumer.get(), load.partitions);

  const Pace pace{
      .start = Clock::now() + std::chrono::milliseconds(10),
      .step = duration_cast<nanoseconds>(std::chrono::duration<double>(1 / load.per_second)),
      .messages = static_cast<std::int64_t>(load.per_second * load.seconds)};
  const auto counted_from =
      pace.start + duration_cast<nanoseconds>(std::chrono::duration<double>(load.warm_up_seconds));
  std::jthread sender(
      [&] { send_paced(producer.get(), topic.get(), pace, make_text(load.message_bytes)); });

  Figures figures;
  figures.seconds = load.seconds;
  while (figures.messages < pace.messages) {
    const Message message(rd_kafka_consumer_poll(consumer.get(), 20'000));
    if (!message) throw LoadFailed("no message in 20 s");
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) continue;
    if (message->err) throw LoadFailed(rd_kafka_message_errstr(message.get()));
    Clock::rep stamp = 0;
    std::memcpy(&stamp, message->payload, sizeof stamp);
    const Clock::time_point due{Clock::duration(stamp)};
    if (due >= counted_from) {
      figures.latency.add(duration_cast<microseconds>(Clock::now() - due).count());
    }
    ++figures.messages;
    figures.bytes += static_cast<std::int64_t>(message->len);
  }
  sender.join();
  if (rd_kafka_flush(producer.get(), 10'000)) throw LoadFailed("messages were not acknowledged");
  return figures;
}

}  // namespace millrace::bench
