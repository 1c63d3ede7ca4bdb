// Records of partitions that other brokers of the cluster lead, for what runs inside a broker and
// writes as clients do. A transport that carries PeerLink (<millrace/peers.h>) may have this
// extension too; what is read comes by Peer::fetch.
#pragma once

#include <memory>

#include <millrace/broker.h>
#include <millrace/environment.h>
#include <millrace/task.h>

namespace millrace {

/// Another broker, asked as a client asks it. A call has no deadline of its own: callers set one.
/// Errc::closed and other errors of the connection: whether a write was done is not known.
/// [the shard that connected]
class RecordPeer {
 public:
  virtual ~RecordPeer() = default;
  /// Of one that is acknowledged (acks is not 0). Topics go by name and id, since either may be
  /// what both brokers speak.
  virtual Task<ProduceAnswer> produce(ProduceRequest request) = 0;
  virtual Task<ListOffsetsAnswer> list_offsets(ListOffsetsRequest request) = 0;
};

/// What Plugin::extension(extension_id) of a transport plugin answers.
class RecordLink {
 public:
  static constexpr const char* extension_id = "millrace.transport.records/1";
  virtual ~RecordLink() = default;
  /// As PeerLink::connect().
  virtual Task<std::unique_ptr<RecordPeer>> connect(Address address) = 0;
};

}  // namespace millrace
