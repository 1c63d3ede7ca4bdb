// librdkafka's handles, owned.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

#include "load.h"

namespace millrace::bench {

using Settings = std::vector<std::pair<std::string, std::string>>;
using OnDelivery = void (*)(rd_kafka_t*, const rd_kafka_message_t*, void*);

struct Destroy {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
  void operator()(rd_kafka_topic_t* topic) const { rd_kafka_topic_destroy(topic); }
  void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
  void operator()(rd_kafka_topic_partition_list_t* list) const {
    rd_kafka_topic_partition_list_destroy(list);
  }
};
using Client = std::unique_ptr<rd_kafka_t, Destroy>;
using Topic = std::unique_ptr<rd_kafka_topic_t, Destroy>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Destroy>;
using Message = std::unique_ptr<rd_kafka_message_t, Destroy>;
using PartitionList = std::unique_ptr<rd_kafka_topic_partition_list_t, Destroy>;

/// `on_delivery` is called with `opaque` as its last argument.
Client make_producer(const Load& load, const Settings& settings, OnDelivery on_delivery,
                     void* opaque);
/// Assigned to all partitions of the topic, at `offset`.
Client make_consumer(const Load& load, const Settings& settings, std::int64_t offset);

}  // namespace millrace::bench
