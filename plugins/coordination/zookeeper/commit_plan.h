// What a commit becomes in ZooKeeper: steps of one multi, worked out from what is known of the
// znodes that it touches. No I/O.
//
// A key is a znode with a value, perhaps of no bytes; a znode with no value at all is a folder,
// made because something is below it, and removed with the last of that. Folders of the first two
// levels ("/brokers/topics") stay.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/coordination.h>

#include "client.h"

namespace millrace::zookeeper {

/// A znode as it was when last read.
struct Known {
  bool there = false;
  bool folder = false;
  std::int64_t owner = 0;  ///< the session of an ephemeral one
  std::int32_t version = 0;
  std::int32_t children = 0;
};
using KnownNodes = std::map<std::string, Known, std::less<>>;

/// The znodes that have to be known beside those that are: the keys, and once these are known all
/// that is above those of them that are to be made or removed. Of a key that only gets another
/// value nothing else needs to be read.
std::vector<std::string> unknown_nodes(const std::vector<Write>& writes, const KnownNodes& known);

struct CommitPlan {
  std::vector<Op> ops;
  std::vector<Version> versions;  ///< as Coordination::commit answers them
  std::size_t bytes = 0;          ///< of the packet, at most
};

/// `session` is ours: an ephemeral key of another one is made anew when we write it. Errors as
/// Coordination::commit gives them.
Result<CommitPlan> plan_commit(const std::vector<Write>& writes, KnownNodes known,
                               std::int64_t session);

}  // namespace millrace::zookeeper
