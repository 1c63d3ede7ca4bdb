// State, timers and input positions of one task as records of its changelog, and as a snapshot.
//
// A changelog record's key is KIND (one byte), the length of a name (varint), the name, and what is
// left. A record without a value takes back what an earlier one of its key said.
//
//   'p'  source topic        the next offset to be read and the stream's time, two big-endian
//   int64;
//                            then the topic's id, 16 bytes, which old entries do not have
//   's'  step, key of state  the value
//   't'  step, timer's name  when, in milliseconds, a big-endian int64
//
// A snapshot has the same keys and values, as of an offset of the changelog.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/result.h>
#include <millrace/types.h>

#include "kernel/streams/operator_chain.h"
#include "kernel/streams/stream_batch.h"

namespace millrace::kernel {

/// Offsets mean something in the topic of that id alone: one that was deleted and made anew is
/// another.
struct SourcePosition {
  Offset next;         ///< to be read
  Uuid topic_id = {};  ///< none: not known
  friend bool operator==(const SourcePosition&, const SourcePosition&) = default;
};
/// By source topic.
using SourcePositions = std::map<std::string, SourcePosition, std::less<>>;

/// [a worker; one thread at a time]
class KeyedStateLog {
 public:
  /// What a changelog's record says. Steps and sources that are not known are passed over: the
  /// stream was declared otherwise then. Errc::corrupt names what is wrong.
  static Result<> apply(std::optional<Bytes> key, std::optional<Bytes> value, OperatorChain& chain,
                        SourcePositions& positions);

  /// What has changed, and all positions, as one batch.
  Buffer changes(OperatorChain& chain, const SourcePositions& positions, Timestamp now);

  /// `at`: the changelog's next offset.
  static Buffer snapshot(OperatorChain& chain, const SourcePositions& positions, Offset at);
  static Result<> restore(Buffer snapshot, Offset at, OperatorChain& chain,
                          SourcePositions& positions);

 private:
  void add(char kind, std::string_view name, Bytes rest, std::optional<Bytes> value, Timestamp now);

  StreamBatch batch_;
  std::vector<std::byte> key_;  // its memory is used again
};

}  // namespace millrace::kernel
