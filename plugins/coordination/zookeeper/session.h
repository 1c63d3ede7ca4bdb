// One session with ZooKeeper: connection, heartbeats, and until when nobody may think us dead.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>

#include "client.h"

namespace millrace::zookeeper {

/// Told to whoever needs to know of watches and of the session's end.  [control thread]
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  virtual void on_watch(const std::string& path) = 0;
  virtual void on_end() = 0;
};

/// Disconnection and expiry are two things. While there is no connection, requests wait and the
/// lease runs down; the session is gone only when a server says so (or close() is called), and from
/// then on everything is Errc::fenced.
///
/// How long a lease holds. A session expires on the leader, `timeout` after the last sign of life
/// that the leader was told of. The server we speak to may be a follower that was cut off from the
/// leader without knowing; so a heartbeat is a `sync`, which the leader answers, and the library's
/// own pings do not count. Followers hand on signs of life every half tick, so the leader may know
/// only of what was half a tick (at most a quarter of the time-out: servers grant no less than two
/// ticks) and one heartbeat older than the request it answers. Hence: valid for half the time-out
/// after the moment at which the last answered heartbeat was sent.  [control thread]
class Session final : public ClientEvents, public std::enable_shared_from_this<Session> {
 public:
  Session(Environment& environment, Log log) : environment_(environment), log_(std::move(log)) {}

  /// Opens the handle and waits for a server, a host name or a leader until `deadline`:
  /// Errc::timed_out. Errc::fenced: a session to be resumed that is no more.
  Task<> open(ClientSettings settings, MonoTime deadline);
  /// Waits for the first heartbeat, then keeps them going.
  Task<> begin_heartbeats();
  /// Ends the session and waits for its end, on a worker.
  Task<> close();
  /// The same at once, in this thread.
  void close_now() noexcept;

  /// What the server answers to the request that `begin(Client&)` makes; made again as often as
  /// the connection is lost meanwhile, so it must bear repetition. Errc::fenced.
  template <class F>
  Task<Answer> ask(F begin) {
    const auto self = shared_from_this();
    while (true) {
      MR_CO_CHECK(co_await connected());
      auto asked = begin(*client_);
      MR_CO_TRY(auto answer, co_await asked);
      if (answer.code == Code::session_over) co_return end_as_expired();
      if (answer.code != Code::connection_lost) co_return std::move(answer);
      MR_CO_CHECK(co_await sleep(retry_pause));
    }
  }
  /// The same for many, whose requests go out together, a bounded number at once.
  template <class F>
  Task<std::vector<Answer>> ask_each(std::vector<std::string> paths, F begin) {
    const auto self = shared_from_this();
    std::vector<Answer> answers;
    answers.reserve(paths.size());
    while (answers.size() < paths.size()) {
      MR_CO_CHECK(co_await connected());
      const auto end = std::min(paths.size(), answers.size() + requests_at_once);
      std::vector<Pending<Answer>> asked;
      for (auto at = answers.size(); at < end; ++at) asked.push_back(begin(*client_, paths[at]));
      for (auto& one : asked) {
        MR_CO_TRY(auto answer, co_await one);
        if (answer.code == Code::session_over) co_return end_as_expired();
        if (answer.code == Code::connection_lost) {
          MR_CO_CHECK(co_await sleep(retry_pause));
          break;
        }
        answers.push_back(std::move(answer));
      }
    }
    co_return std::move(answers);
  }
  /// Completes when there is a connection. Errc::fenced.
  Task<> connected();

  /// While connected and not over.
  Client& client() noexcept { return *client_; }
  bool is_over() const noexcept { return over_; }
  /// Why nothing can be asked any more.
  Error over() const;
  /// For an answer that says so. The connection may outlive its session, when that was ended over
  /// another one, and then no event tells.
  Error end_as_expired();
  Task<> wait_for_end();

  const SessionId& id() const noexcept { return id_; }
  /// What the server granted.
  Duration timeout() const noexcept { return timeout_; }
  MonoTime valid_until() const noexcept { return MonoTime(Duration(valid_until_.load())); }
  Environment& environment() noexcept { return environment_; }
  const Log& log() const noexcept { return log_; }

  void listen(SessionListener& listener) { listener_ = &listener; }
  void unlisten() noexcept { listener_ = nullptr; }

  void on_connection(Connection now) override;
  void on_watch(const std::string& path) override;

  static constexpr Duration retry_pause = std::chrono::milliseconds(10);
  static constexpr std::size_t requests_at_once = 512;

 private:
  Task<> open_handle(MonoTime deadline);
  Task<> first_connection(MonoTime deadline);
  Task<> heartbeat_loop();
  Task<> heartbeat();
  void end(std::string why);
  std::string waiting_for() const;

  Environment& environment_;
  Log log_;
  ClientSettings settings_;
  std::unique_ptr<Client> client_;
  SessionListener* listener_ = nullptr;
  SessionId id_;
  Duration timeout_{};
  std::atomic<Duration::rep> valid_until_ = 0;
  Connection connection_ = Connection::connecting;
  bool was_connected_ = false;
  bool over_ = false;
  std::string why_over_;
  MonoTime disconnected_at_{};
  Event changed_;
  CancelScope background_;
};

}  // namespace millrace::zookeeper
