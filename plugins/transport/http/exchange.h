// One request on its way to an answer, and what its handler works with.
#pragma once

#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/environment.h>
#include <millrace/groups.h>
#include <millrace/observe.h>
#include <millrace/operations.h>

#include "message.h"
#include "settings.h"

namespace millrace::http_transport {

/// What all connections share; outlives them.
struct Services {
  const Settings& settings;
  Environment& environment;
  Broker& broker;
  Operations* operations;  ///< nullptr: the kernel offers none
  GroupService* groups;    ///< nullptr: no plugin offers it
  Metrics& metrics;
  Log log;
};

/// Owned by its connection until the answer is made.  [connection's shard]
struct Exchange {
  const Services& services;
  Session& session;
  HttpRequest request;
  std::vector<std::string> arguments;  ///< what the route's path leaves open, decoded
};

/// An error means that the broker is stopping.
using Handler = Task<HttpResponse> (*)(Exchange& exchange);

}  // namespace millrace::http_transport
