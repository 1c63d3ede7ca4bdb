#include <thread>

#include "paced.h"
#include "rdkafka.h"

namespace millrace::bench {
namespace {

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

  const Pace pace(load);
  std::jthread sender(
      [&] { send_paced(producer.get(), topic.get(), pace, make_text(load.message_bytes)); });

  Figures figures;
  figures.seconds = load.seconds;
  while (figures.messages < pace.messages) {
    const Message message(rd_kafka_consumer_poll(consumer.get(), 20'000));
    if (!message) throw LoadFailed("no message in 20 s");
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) continue;
    if (message->err) throw LoadFailed(rd_kafka_message_errstr(message.get()));
    const auto due = due_of(*message);
    if (due >= pace.counted_from) figures.latency.add(microseconds_since(due));
    ++figures.messages;
    figures.bytes += static_cast<std::int64_t>(message->len);
  }
  sender.join();
  if (rd_kafka_flush(producer.get(), 10'000)) throw LoadFailed("messages were not acknowledged");
  return figures;
}

}  // namespace millrace::bench
