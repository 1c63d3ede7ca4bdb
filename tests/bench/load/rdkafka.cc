#include "rdkafka.h"

namespace millrace::bench {
namespace {

Client make_client(rd_kafka_type_t type, const Load& load, const Settings& settings,
                   OnDelivery on_delivery, void* opaque) {
  char error[512];
  auto* conf = rd_kafka_conf_new();
  const auto set = [&](const std::string& name, const std::string& value) {
    const auto result = rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error, sizeof error);
    if (result != RD_KAFKA_CONF_OK) throw LoadFailed(error);
  };
  set("bootstrap.servers", load.address);
  set("log_level", "2");
  for (const auto& [name, value] : settings) set(name, value);
  rd_kafka_conf_set_opaque(conf, opaque);
  if (on_delivery) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  Client client(rd_kafka_new(type, conf, error, sizeof error));
  if (!client) throw LoadFailed(error);
  return client;
}

}  // namespace

Client make_producer(const Load& load, const Settings& settings, OnDelivery on_delivery,
                     void* opaque) {
  return make_client(RD_KAFKA_PRODUCER, load, settings, on_delivery, opaque);
}

Client make_consumer(const Load& load, const Settings& settings, std::int64_t offset) {
  auto all = settings;
  all.emplace_back("group.id", "bench");
  all.emplace_back("enable.auto.commit", "false");
  auto client = make_client(RD_KAFKA_CONSUMER, load, all, nullptr, nullptr);
  rd_kafka_poll_set_consumer(client.get());
  const PartitionList partitions(rd_kafka_topic_partition_list_new(load.partitions));
  for (int partition = 0; partition < load.partitions; ++partition) {
    rd_kafka_topic_partition_list_add(partitions.get(), load.topic.c_str(), partition)->offset =
        offset;
  }
  if (rd_kafka_assign(client.get(), partitions.get())) throw LoadFailed("assignment refused");
  return client;
}

}  // namespace millrace::bench
