// A client of a simulated broker: a topic, records to and from one partition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/kafka/client.h>

namespace millrace::testing {

Task<std::unique_ptr<kafka::Client>> connect_to(Network& network, std::string host);
Task<> create_topic(kafka::Client& client, std::string topic, std::int32_t partitions,
                    std::int16_t replicas = 1);
/// Where the leader of the topic's first partition is.
Task<std::string> leader_host(kafka::Client& client, std::string topic);
/// Today's versions name topics by id.
Task<Uuid> topic_id(kafka::Client& client, std::string topic);
/// Sends one record with acks = all and answers its offset.
Task<std::int64_t> produce(kafka::Client& client, TopicPartition partition, std::string value);
/// The values of every record from the partition's start to its high watermark.
Task<std::vector<std::string>> consume(kafka::Client& client, TopicPartition partition);

}  // namespace millrace::testing
