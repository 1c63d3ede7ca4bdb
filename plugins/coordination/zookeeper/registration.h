// What a broker does in ZooKeeper before anything else: its chroot, its place among the members,
// and the session that it left behind when it died.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <millrace/environment.h>

#include "session.h"
#include "watches.h"

namespace millrace::zookeeper {

/// Makes the chroot when it is missing, and lets the session's paths be below it.  [control thread]
Task<> enter_chroot(std::shared_ptr<Session> session, std::string chroot);

/// Holds a data folder and what is below the chroot together: the cluster's mark, made by its first
/// broker, stands in both. Errc::conflict when they differ, or when the folder has one and the
/// chroot has none: it is another cluster's, or the chroot is wrong.  [control thread]
Task<> check_cluster(std::shared_ptr<Session> session, std::string chroot, std::string folder);

/// "/millrace/members/1": ephemeral, so that there is one broker of an id; its value says where.
std::string member_path(std::int32_t broker);

/// Registers the broker and answers the zxid of that, which is higher for each later session of
/// anyone. Waits for the end of another session that has the id; Errc::conflict when that does not
/// end within `patience`.  [control thread]
Task<std::int64_t> register_member(std::shared_ptr<Session> session,
                                   std::shared_ptr<Watches> watches, std::int32_t broker,
                                   std::string value, Duration patience);

/// The last session of a data folder, in a file of it: when its broker was killed, the next one
/// ends it instead of waiting until it expires. Only for a process on the same machine since it was
/// started, over a folder at the same place: a copy of the folder is no proof that the broker is
/// dead.
class SavedSession {
 public:
  SavedSession(FileSystem& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  /// [a worker]
  Result<> save(const SessionId& session) const;
  /// None: there is none, it is another's, or it cannot be read.  [a worker]
  std::optional<SessionId> load() const;

 private:
  std::string path() const { return folder_ + "/coordination.session"; }
  std::string place() const;

  FileSystem& files_;
  std::string folder_;
};

}  // namespace millrace::zookeeper
