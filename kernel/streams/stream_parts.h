// What all streams of a broker use and do not own; outlives them.
#pragma once

#include <memory>
#include <string>

#include <millrace/codec.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/peer_records.h>
#include <millrace/peers.h>
#include <millrace/shard.h>

#include "kernel/broker/broker.h"
#include "kernel/broker/partitions.h"
#include "kernel/host/instance_host.h"
#include "kernel/host/plugin_files.h"

namespace millrace::kernel {

/// How other brokers are reached: where they listen under `listener`. None: a cluster of one.
struct StreamLinks {
  PeerLink* peers = nullptr;
  RecordLink* records = nullptr;
  std::string listener;
};

struct StreamParts {
  Environment& environment;
  KernelBroker& broker;
  PartitionMap& partitions;
  Coordination& coordination;
  LogSink& log;
  Metrics& metrics;
  PluginFiles files;
  std::shared_ptr<const HostSettings> settings;
  std::string data;        ///< the data directory: private copies of plugin files are in it
  PluginTrial trial = {};  ///< of what is loaded while the broker runs
  /// Held while a stream makes its topics.  [the first data shard]
  std::shared_ptr<Mutex> making_topics = std::make_shared<Mutex>();
  /// Known before streams open.
  std::shared_ptr<StreamLinks> links = std::make_shared<StreamLinks>();
};

}  // namespace millrace::kernel
