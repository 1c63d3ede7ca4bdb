// As much as one librdkafka client can send, and read.
#include <vector>

#include "rdkafka.h"

namespace millrace::bench {
namespace {

struct Deliveries {
  std::int64_t done = 0;
  std::string failure;
  Histogram latency;
};

void count_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto& deliveries = *static_cast<Deliveries*>(opaque);
  ++deliveries.done;
  deliveries.latency.add(rd_kafka_message_latency(message));
  if (message->err) deliveries.failure = rd_kafka_err2str(message->err);
}

/// The client knows the topic's partitions before the clock starts.
void wait_for_metadata(rd_kafka_t* client, rd_kafka_topic_t* topic) {
  const struct rd_kafka_metadata* metadata = nullptr;
  const auto error = rd_kafka_metadata(client, 0, topic, &metadata, 10'000);
  if (error) throw LoadFailed(std::string("metadata: ") + rd_kafka_err2str(error));
  rd_kafka_metadata_destroy(metadata);
}

constexpr std::size_t text_bytes = 16UL << 20;

}  // namespace

Figures produce(const Load& load) {
  Deliveries deliveries;
  const auto client = make_producer(load,
                                    {{"acks", load.acks},
                                     {"linger.ms", std::to_string(load.linger_ms)},
                                     {"compression.type", load.compression},
                                     {"sticky.partitioning.linger.ms", load.scatter ? "0" : "10"},
                                     {"batch.size", "1000000"},
                                     {"message.max.bytes", "1000000"},
                                     {"queue.buffering.max.messages", "100000"},
                                     {"queue.buffering.max.kbytes", "65536"}},
                                    &count_delivery, &deliveries);
  const Topic topic(rd_kafka_topic_new(client.get(), load.topic.c_str(), nullptr));
  wait_for_metadata(client.get(), topic.get());
  auto text = make_text(text_bytes + load.message_bytes);

  const auto started = Clock::now();
  std::size_t at = 0;
  for (std::int64_t sent = 0; sent < load.messages;) {
    const auto refused =
        rd_kafka_produce(topic.get(), RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, text.data() + at,
                         load.message_bytes, nullptr, 0, nullptr);
    if (refused && rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      throw LoadFailed(rd_kafka_err2str(rd_kafka_last_error()));
    }
    if (!refused) at = (at + load.message_bytes) % text_bytes;
    if (!refused) ++sent;
    if (refused || sent % 256 == 0) rd_kafka_poll(client.get(), refused ? 10 : 0);
  }
  while (deliveries.done < load.messages) rd_kafka_poll(client.get(), 100);
  const std::chrono::duration<double> taken = Clock::now() - started;
  if (!deliveries.failure.empty()) throw LoadFailed("a message failed: " + deliveries.failure);
  return {load.messages, load.messages * static_cast<std::int64_t>(load.message_bytes),
          taken.count(), deliveries.latency};
}

Figures consume(const Load& load) {
  const auto client = make_consumer(load,
                                    {{"fetch.message.max.bytes", "1048576"},
                                     {"queued.max.messages.kbytes", "65536"},
                                     {"queued.min.messages", "1000000"}},
                                    0);
  const Queue queue(rd_kafka_queue_get_consumer(client.get()));
  std::vector<rd_kafka_message_t*> messages(4096);
  Figures figures;
  Clock::time_point started;
  while (figures.messages < load.messages) {
    const auto count =
        rd_kafka_consume_batch_queue(queue.get(), 200, messages.data(), messages.size());
    for (std::ptrdiff_t at = 0; at < count; ++at) {
      const Message message(messages[static_cast<std::size_t>(at)]);
      if (message->err) throw LoadFailed(rd_kafka_message_errstr(message.get()));
      if (figures.messages++ == 0) started = Clock::now();
      figures.bytes += static_cast<std::int64_t>(message->len);
    }
  }
  figures.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  return figures;
}

}  // namespace millrace::bench
