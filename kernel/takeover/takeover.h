// Brings what Kafka knew of its topics into our coordination; see README.md.
#pragma once

#include <string>

#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/storage.h>

namespace millrace::kernel {

struct Takeover {
  Environment& environment;
  Coordination& coordination;
  Storage& storage;
  Log log;
  std::string data;  ///< the data directory
  std::int32_t broker_id = -1;
};

/// Before the cluster's state is read, with the directory locked. Errc::conflict when the directory
/// is of another broker; nothing is changed then.  [control thread]
Task<> take_over(Takeover takeover);

}  // namespace millrace::kernel
