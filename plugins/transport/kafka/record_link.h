// Writes to partitions that other brokers lead, over the protocol's client library.
#pragma once

#include <memory>

#include <millrace/environment.h>
#include <millrace/peer_records.h>

namespace millrace::kafka_transport {

/// One connection for each connect().  [any shard; a RecordPeer: the shard that connected]
class KafkaRecordLink final : public RecordLink {
 public:
  explicit KafkaRecordLink(Network& network) : network_(network) {}
  Task<std::unique_ptr<RecordPeer>> connect(Address address) override;

 private:
  Network& network_;
};

}  // namespace millrace::kafka_transport
