// What a configuration that is read again makes of the streams that run.
#pragma once

#include <string>
#include <vector>

#include <millrace/result.h>

#include "kernel/host/plan.h"

namespace millrace::kernel {

struct StreamChange {
  enum class Kind {
    started,   ///< it is new
    changed,   ///< it goes on as it is declared now, with its state
    replaced,  ///< files of operators are others; the rest stays
    ended      ///< it is not declared any more; its changelog stays
  };
  Kind kind = Kind::started;
  std::string stream;
  std::vector<std::size_t> steps;  ///< whose operators are replaced
  Result<> done;                   ///< what has become of it
};

/// "stream views: operator count replaced", without how it went.
std::string to_string(const StreamChange& change, const std::vector<PlannedStream>& streams);

/// By name. Both hold a stream once.
std::vector<StreamChange> changes_between(const std::vector<PlannedStream>& running,
                                          const std::vector<PlannedStream>& wanted);

/// The stream of this name; null: there is none.
const PlannedStream* find_stream(const std::vector<PlannedStream>& streams, std::string_view name);

}  // namespace millrace::kernel
