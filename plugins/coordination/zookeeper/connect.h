// What `coordination.connect` says: "zk1:2181,zk2:2181/millrace".
#pragma once

#include <string>
#include <string_view>

#include <millrace/result.h>

namespace millrace::zookeeper {

struct ConnectString {
  std::string servers;  ///< "zk1:2181,zk2:2181"
  std::string chroot;   ///< "/millrace", or "" for the root
};

/// A server without a port gets ZooKeeper's, 2181. Errc::invalid_argument says what is wrong.
Result<ConnectString> parse_connect(std::string_view text);

/// Whether ZooKeeper takes this as the path of a znode.
bool valid_path(std::string_view path) noexcept;

/// "/a/b" -> "/a"; "/a" -> "".
std::string_view parent_of(std::string_view path) noexcept;

}  // namespace millrace::zookeeper
