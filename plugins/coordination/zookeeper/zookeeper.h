// Coordination of several brokers by ZooKeeper; see README.md.
#pragma once

#include <memory>
#include <string>

#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>

#include "client.h"
#include "commits.h"
#include "connect.h"
#include "session.h"
#include "watches.h"

namespace millrace::zookeeper {

struct Settings {
  ConnectString connect;
  Duration session_timeout = std::chrono::seconds(6);
  Duration start_timeout = std::chrono::minutes(1);
  Access access = Access::open;
  std::string digest;
  std::string data;  ///< the broker's data folder
};

/// Before join() every other call is Errc::closed; after the end of the session Errc::fenced, until
/// the next join().  [control thread]
class ZooKeeper final : public Coordination {
 public:
  ZooKeeper(Environment& environment, Log log, Settings settings)
      : environment_(environment), log_(std::move(log)), settings_(std::move(settings)) {}
  /// Ends the session; may wait some seconds for the server.
  ~ZooKeeper() override;

  /// Also Errc::timed_out: no ZooKeeper within the start time-out; Errc::conflict: the folder or
  /// the broker id is another's.
  Task<std::unique_ptr<Lease>> join(Member self) override;
  Task<Versioned> get(std::string key) override;
  Task<std::vector<std::string>> list(std::string prefix) override;
  Task<std::vector<Version>> commit(std::vector<Write> writes) override;
  Task<Seen> next_change(std::string prefix, Seen seen) override;

 private:
  // What ends with the session. Calls that wait hold it.
  struct Joined {
    std::shared_ptr<Session> session;
    std::shared_ptr<Watches> watches;
    std::shared_ptr<Commits> commits;
  };
  Task<> lock_folder();
  Task<> end_previous(MonoTime deadline);
  Task<std::shared_ptr<Session>> open(std::optional<SessionId> resume, MonoTime deadline);
  Result<Joined> joined() const;

  Environment& environment_;
  Log log_;
  Settings settings_;
  std::unique_ptr<FileSystem::Lock> folder_lock_;
  Joined joined_;
  std::shared_ptr<std::int64_t> revisions_ = std::make_shared<std::int64_t>(0);
};

}  // namespace millrace::zookeeper
