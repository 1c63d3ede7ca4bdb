#include "zookeeper.h"

#include <algorithm>
#include <optional>

#include <millrace/data_folder.h>

#include "registration.h"

namespace millrace::zookeeper {

namespace {

class SessionLease final : public Lease {
 public:
  SessionLease(std::shared_ptr<Session> session, std::int64_t epoch)
      : session_(std::move(session)), epoch_(epoch) {}
  MonoTime valid_until() const noexcept override { return session_->valid_until(); }
  std::int64_t epoch() const noexcept override { return epoch_; }
  Task<> lost() override { return session_->wait_for_end(); }

 private:
  std::shared_ptr<Session> session_;
  std::int64_t epoch_;
};

Error failed(const std::string& path, const Answer& answer) {
  if (answer.code == Code::no_permission) {
    return Error{Errc::io, path +
                               ": ZooKeeper does not let us read it: its access list wants "
                               "another coordination.digest"};
  }
  return Error{Errc::io, path + ": ZooKeeper says: " + answer.error};
}

std::int64_t ms_of(Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

}  // namespace

ZooKeeper::~ZooKeeper() {
  if (joined_.session) joined_.session->close_now();
}

Result<ZooKeeper::Joined> ZooKeeper::joined() const {
  if (!joined_.commits) return Error{Errc::closed, "coordination has not been joined"};
  if (joined_.session->is_over()) return joined_.session->over();
  return joined_;
}

Task<> ZooKeeper::lock_folder() {
  if (folder_lock_) co_return {};
  auto locking =
      on_worker(environment_.workers(), [this]() -> Result<std::unique_ptr<FileSystem::Lock>> {
        auto& files = environment_.files();
        MR_CHECK(make_data_folder(files, settings_.data));
        return files.lock(settings_.data + "/coordination.lock");
      });
  MR_CO_TRY(folder_lock_, co_await std::move(locking));
  co_return {};
}

Task<std::shared_ptr<Session>> ZooKeeper::open(std::optional<SessionId> resume, MonoTime deadline) {
  auto session = std::make_shared<Session>(environment_, log_);
  ClientSettings settings{.servers = settings_.connect.servers,
                          .session_timeout = settings_.session_timeout,
                          .access = settings_.access,
                          .digest = settings_.digest,
                          .resume = resume};
  auto opened = co_await session->open(std::move(settings), deadline);
  if (!opened) {
    static_cast<void>(co_await session->close());
    co_return opened.error();
  }
  if (!settings_.digest.empty()) {
    MR_CO_TRY(const auto answer,
              co_await session->ask([](Client& client) { return client.authenticate(); }));
    if (answer.code != Code::ok) {
      static_cast<void>(co_await session->close());
      co_return Error{Errc::invalid_argument,
                      "ZooKeeper refuses coordination.digest: " + answer.error};
    }
  }
  co_return session;
}

// Before the first session, which waits for the servers; later ones find them.
Task<> ZooKeeper::end_previous(MonoTime deadline) {
  if (joined_.session) {
    auto previous = std::exchange(joined_, {});
    co_return co_await previous.session->close();
  }
  auto loading = on_worker(environment_.workers(), [this]() -> Result<std::optional<SessionId>> {
    return SavedSession(environment_.files(), settings_.data).load();
  });
  MR_CO_TRY(auto saved, co_await std::move(loading));
  if (!saved) co_return {};
  auto resumed = co_await open(saved, deadline);
  if (resumed) {
    log_.info("the session of the broker that died here is ended now",
              {{"session", to_string(*saved)}});
    co_return co_await (*resumed)->close();
  }
  if (resumed.error().code == Errc::fenced) co_return {};
  co_return resumed.error();
}

Task<std::unique_ptr<Lease>> ZooKeeper::join(Member self) {
  const auto deadline = environment_.control().now() + settings_.start_timeout;
  MR_CO_CHECK(co_await lock_folder());
  MR_CO_CHECK(co_await end_previous(deadline));
  MR_CO_TRY(auto session, co_await open(std::nullopt, deadline));
  joined_.session = session;
  MR_CO_CHECK(co_await enter_chroot(session, settings_.connect.chroot));
  MR_CO_CHECK(co_await check_cluster(session, settings_.connect.chroot, settings_.data));
  const auto id = session->id();
  auto saving = on_worker(environment_.workers(), [this, id] {
    return SavedSession(environment_.files(), settings_.data).save(id);
  });
  const auto saved = co_await std::move(saving);
  if (!saved) {
    // As on a full disk, which this broker may have to make room on.
    log_.warning(
        "the session cannot be kept on disk: should this broker die, its successor waits "
        "until ZooKeeper ends it",
        {{"session", to_string(id)}, {"error", to_string(saved.error())}});
  }
  joined_.watches = std::make_shared<Watches>(session, revisions_);
  // A session of a dead broker may have been granted twice what we ask for.
  const auto patience = 2 * session->timeout() + settings_.session_timeout;
  MR_CO_TRY(const auto epoch, co_await register_member(session, joined_.watches, self.broker_id,
                                                       settings_.data, patience));
  joined_.commits = std::make_shared<Commits>(session, member_path(self.broker_id), settings_.data);
  MR_CO_CHECK(co_await session->begin_heartbeats());
  log_.info("joined", {{"server", session->client().server()},
                       {"chroot", settings_.connect.chroot},
                       {"session", to_string(id)},
                       {"session_timeout_ms", ms_of(session->timeout())},
                       {"epoch", epoch}});
  if (session->timeout() != settings_.session_timeout) {
    log_.warning("ZooKeeper grants another session time-out than was asked for",
                 {{"asked_ms", ms_of(settings_.session_timeout)},
                  {"granted_ms", ms_of(session->timeout())}});
  }
  co_return std::make_unique<SessionLease>(session, epoch);
}

Task<Versioned> ZooKeeper::get(std::string key) {
  MR_CO_TRY(const auto joined, joined());
  if (!valid_path(key)) {
    co_return Error{Errc::invalid_argument, "'" + key + "' is no path of a key"};
  }
  MR_CO_TRY(auto answer,
            co_await joined.session->ask([&key](Client& client) { return client.read(key); }));
  if (answer.code == Code::no_node || (answer.code == Code::ok && answer.folder)) {
    co_return Error{Errc::not_found, "no key " + key};
  }
  if (answer.code != Code::ok) co_return failed(key, answer);
  co_return Versioned{.value = std::move(answer.value),
                      .version = answer.stat.version,
                      .ephemeral = answer.stat.owner != 0};
}

Task<std::vector<std::string>> ZooKeeper::list(std::string prefix) {
  MR_CO_TRY(const auto joined, joined());
  if (prefix.size() > 1 && prefix.ends_with('/')) prefix.pop_back();
  if (prefix != "/" && !valid_path(prefix)) {
    co_return Error{Errc::invalid_argument, "'" + prefix + "' is no path"};
  }
  MR_CO_TRY(auto answer, co_await joined.session->ask(
                             [&prefix](Client& client) { return client.children(prefix); }));
  if (answer.code == Code::no_node) co_return std::vector<std::string>();
  if (answer.code != Code::ok) co_return failed(prefix, answer);
  std::ranges::sort(answer.names);
  co_return std::move(answer.names);
}

Task<std::vector<Version>> ZooKeeper::commit(std::vector<Write> writes) {
  MR_CO_TRY(const auto joined, joined());
  co_return co_await Commits::commit(joined.commits, std::move(writes));
}

Task<Seen> ZooKeeper::next_change(std::string prefix, Seen seen) {
  MR_CO_TRY(const auto joined, joined());
  co_return co_await Watches::next_change(joined.watches, std::move(prefix), seen);
}

}  // namespace millrace::zookeeper
