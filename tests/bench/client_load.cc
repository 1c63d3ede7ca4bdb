// client_load produce|consume ADDRESS TOPIC MESSAGES BYTES
//
// One librdkafka client, one partition. Prints one JSON line: messages, payload bytes, seconds. A
// produce is timed from the first send to the last acknowledgement (acks=all), a consume from the
// assignment to the last message.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <librdkafka/rdkafka.h>

namespace {

using Clock = std::chrono::steady_clock;

struct Load {
  std::string address;
  std::string topic;
  std::int64_t messages = 0;
  std::size_t message_bytes = 0;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "client_load: %s\n", what.c_str());
  std::exit(1);
}

using Handle = std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)>;

Handle make_client(rd_kafka_type_t type, const Load& load,
                   const std::vector<std::pair<const char*, const char*>>& settings,
                   void (*on_delivery)(rd_kafka_t*, const rd_kafka_message_t*, void*),
                   void* opaque) {
  char error[512];
  auto* conf = rd_kafka_conf_new();
  const auto set = [&](const char* name, const char* value) {
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) fail(error);
  };
  set("bootstrap.servers", load.address.c_str());
  for (const auto& [name, value] : settings) set(name, value);
  rd_kafka_conf_set_opaque(conf, opaque);
  if (on_delivery) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  auto* client = rd_kafka_new(type, conf, error, sizeof error);
  if (!client) fail(error);
  return {client, &rd_kafka_destroy};
}

// Text that a compressor could halve, so that nothing on the way is flattered by zeros.
std::string make_payload(std::size_t bytes) {
  std::string payload;
  std::uint64_t state = 88172645463325252ULL;
  while (payload.size() < bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    payload += "word" + std::to_string(state % 100'000) + ' ';
  }
  payload.resize(bytes);
  return payload;
}

struct Deliveries {
  std::int64_t done = 0;
  std::int64_t failed = 0;
};

void produce(const Load& load) {
  Deliveries deliveries;
  const auto client = make_client(
      RD_KAFKA_PRODUCER, load,
      {{"acks", "all"},
       {"linger.ms", "5"},
       {"batch.size", "1000000"},
       {"queue.buffering.max.messages", "500000"}},
      [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
        auto& counted = *static_cast<Deliveries*>(opaque);
        ++counted.done;
        if (message->err) ++counted.failed;
      },
      &deliveries);
  const auto payload = make_payload(load.message_bytes);
  auto* topic = rd_kafka_topic_new(client.get(), load.topic.c_str(), nullptr);
  for (std::int64_t sent = 0; sent < load.messages;) {
    const int result =
        rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, const_cast<char*>(payload.data()),
                         payload.size(), nullptr, 0, nullptr);
    if (result == 0) ++sent;
    // A full queue is waited for, not counted as sent.
    rd_kafka_poll(client.get(), result == 0 ? 0 : 10);
  }
  while (deliveries.done < load.messages) rd_kafka_poll(client.get(), 100);
  rd_kafka_topic_destroy(topic);
  if (deliveries.failed > 0) fail(std::to_string(deliveries.failed) + " messages failed");
}

void consume(const Load& load) {
  const auto client = make_client(RD_KAFKA_CONSUMER, load,
                                  {{"group.id", "client_load"},
                                   {"enable.auto.commit", "false"},
                                   {"queued.min.messages", "1000000"}},
                                  nullptr, nullptr);
  auto* partitions = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(partitions, load.topic.c_str(), 0)->offset = 0;
  if (rd_kafka_assign(client.get(), partitions)) fail("the assignment was refused");
  rd_kafka_topic_partition_list_destroy(partitions);
  auto* queue = rd_kafka_queue_get_consumer(client.get());
  std::vector<rd_kafka_message_t*> messages(10'000);
  for (std::int64_t received = 0; received < load.messages;) {
    const auto count =
        rd_kafka_consume_batch_queue(queue, 10'000, messages.data(), messages.size());
    if (count == 0) fail("no message in 10 s");
    for (std::ptrdiff_t at = 0; at < count; ++at) {
      auto* message = messages[static_cast<std::size_t>(at)];
      if (message->err) fail(rd_kafka_message_errstr(message));
      if (message->len != load.message_bytes) fail("a message has another size than was sent");
      rd_kafka_message_destroy(message);
    }
    received += count;
  }
  rd_kafka_queue_destroy(queue);
  rd_kafka_consumer_close(client.get());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 6 ? argv[1] : "";
  if (mode != "produce" && mode != "consume") {
    fail("usage: client_load produce|consume ADDRESS TOPIC MESSAGES BYTES");
  }
  const Load load{argv[2], argv[3], std::atoll(argv[4]),
                  static_cast<std::size_t>(std::atoll(argv[5]))};
  const auto started = Clock::now();
  if (mode == "produce") {
    produce(load);
  } else {
    consume(load);
  }
  const std::chrono::duration<double> seconds = Clock::now() - started;
  std::printf("{\"messages\": %lld, \"bytes\": %lld, \"seconds\": %.3f}\n",
              static_cast<long long>(load.messages),
              static_cast<long long>(load.messages * static_cast<std::int64_t>(load.message_bytes)),
              seconds.count());
}
