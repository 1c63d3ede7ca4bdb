// Says to a live broker what a recorded client said, in the recorded order, and holds its answers
// against the recorded ones.
#pragma once

#include <string>
#include <vector>

#include "bindings.h"
#include "live_broker.h"
#include "session.h"

namespace millrace::wire {

struct Outcome {
  int equal = 0;                         ///< answers and closed connections as recorded
  std::vector<std::string> differences;  ///< one line each: event, path, expected, found
  std::vector<std::string> skipped;      ///< requests not sent: event and reason
};

/// A request whose API or version the broker does not offer is not sent, unless the recorded broker
/// did not answer it either. The broker holds what first_state.h says, and
/// `bindings` are the ids that this gave.
Outcome replay(const Session& session, const Address& broker, const ServedApis& served,
               Bindings bindings);

}  // namespace millrace::wire
