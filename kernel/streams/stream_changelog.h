// The topic that keeps the state of a stream: made, held while the stream runs, deleted with it.
#pragma once

#include <string>

#include <millrace/broker.h>

#include "kernel/config/changelog_name.h"
#include "kernel/streams/stream_parts.h"

namespace millrace::kernel {

/// [the shard of the session]
class StreamChangelog {
 public:
  /// `parts` outlives it.
  StreamChangelog(StreamParts& parts, std::string stream);

  const std::string& topic() const noexcept { return topic_; }

  /// Makes it, or lets it grow to so many partitions; `known` has it now, none: it is not there.
  Task<> ensure(Session& session, std::optional<std::int32_t> known, std::int32_t partitions);
  /// Tasks have it open: it is not deleted under them.
  Task<> keep(bool kept);
  /// State and positions go; nobody has it open. One that is not there is deleted already.
  Task<> remove(Session& session);

 private:
  StreamParts& parts_;
  std::string stream_;
  std::string topic_;
};

}  // namespace millrace::kernel
