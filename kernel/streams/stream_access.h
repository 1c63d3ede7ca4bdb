// What the task of a stream reads and writes, whichever broker of the cluster leads it: what is led
// here as any client of this broker would, the rest over connections of the task's own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <millrace/broker.h>
#include <millrace/peers.h>

#include "kernel/streams/stream_parts.h"

namespace millrace::kernel {

/// Answers as Broker's, of topics and partitions that may come in another order. A broker that
/// cannot be reached is LEADER_NOT_AVAILABLE of what it leads, and connected to anew the next time.
/// [the task's shard]
class StreamAccess {
 public:
  StreamAccess(StreamParts& parts, std::string_view stream);
  StreamAccess(const StreamAccess&) = delete;
  StreamAccess& operator=(const StreamAccess&) = delete;

  /// Topics go by id, of a topic there is one partition.
  Task<FetchAnswer> fetch(FetchRequest request);
  /// Topics go by name.
  Task<ProduceAnswer> produce(ProduceRequest request);
  Task<PartitionOffsetFound> list_offset(std::string topic, PartitionOffsetQuery query);
  /// Of this broker.
  Session& session() noexcept { return *session_; }

 private:
  using BrokerId = std::int32_t;

  BrokerId here() const noexcept { return parts_.broker.config().id; }
  const ClusterState* cluster() const;
  /// Where to ask: here, too, where nobody is known to lead it.
  BrokerId leader_of(const TopicState* topic, std::int32_t partition) const;
  Address address_of(BrokerId broker) const;
  template <class Link, class P>
  Task<std::shared_ptr<P>> connected(Link* link, std::map<BrokerId, std::shared_ptr<P>>& known,
                                     BrokerId broker);

  Task<FetchAnswer> fetch_at(BrokerId broker, FetchRequest request);
  Task<FetchAnswer> fetch_here(FetchRequest request);
  Task<FetchAnswer> fetch_from(BrokerId broker, FetchRequest request);
  Task<ProduceAnswer> produce_at(BrokerId broker, ProduceRequest request);
  Task<ProduceAnswer> produce_here(ProduceRequest request);
  Task<ProduceAnswer> produce_to(BrokerId broker, ProduceRequest request);
  Task<ListOffsetsAnswer> list_from(BrokerId broker, ListOffsetsRequest request);

  StreamParts& parts_;
  std::unique_ptr<Session> session_;
  std::map<BrokerId, std::shared_ptr<Peer>> readers_;
  std::map<BrokerId, std::shared_ptr<RecordPeer>> writers_;
};

}  // namespace millrace::kernel
