#include "session.h"

#include <algorithm>

#include "library_log.h"

namespace millrace::zookeeper {

namespace {

constexpr Duration open_again_after = std::chrono::seconds(1);
constexpr Duration say_waiting_after = std::chrono::seconds(2);
constexpr Duration say_waiting_every = std::chrono::seconds(10);
constexpr auto heartbeats_in_a_timeout = 6;
constexpr auto lease_part_of_a_timeout = 2;

std::int64_t ms_of(Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

}  // namespace

Task<> Session::open(ClientSettings settings, MonoTime deadline) {
  settings_ = std::move(settings);
  MR_CO_CHECK(co_await open_handle(deadline));
  MR_CO_CHECK(co_await first_connection(deadline));
  id_ = client_->session();
  timeout_ = client_->session_timeout();
  co_return {};
}

// Host names may become known later than we start.
Task<> Session::open_handle(MonoTime deadline) {
  const auto self = shared_from_this();
  auto& control = environment_.control();
  bool said = false;
  while (true) {
    auto opening = on_worker(environment_.workers(), [self] {
      return Client::open(self->settings_, self->environment_.control(), self, self->log_);
    });
    auto opened = co_await std::move(opening);
    if (opened) {
      if (over_) co_return over();
      client_ = *std::move(opened);
      co_return {};
    }
    if (opened.error().code != Errc::timed_out || control.now() >= deadline) {
      co_return opened.error();
    }
    if (!std::exchange(said, true)) {
      log_.warning("waiting for a host name of ZooKeeper's",
                   {{"connect", settings_.servers}, {"error", opened.error().detail}});
    }
    MR_CO_CHECK(co_await sleep(open_again_after));
  }
}

std::string Session::waiting_for() const {
  auto error = LibraryLog::last_error();
  return error.empty() ? "no answer" : error;
}

Task<> Session::first_connection(MonoTime deadline) {
  const auto self = shared_from_this();
  auto& control = environment_.control();
  const auto began = control.now();
  auto say_at = began + say_waiting_after;
  while (true) {
    const auto until = std::min(deadline, say_at);
    auto waiting = with_deadline(connected(), std::max(until - control.now(), Duration(1)));
    auto waited = co_await std::move(waiting);
    if (waited || waited.error().code != Errc::timed_out) co_return waited;
    const auto seconds = ms_of(control.now() - began) / 1000;
    if (control.now() >= deadline) {
      co_return Error{Errc::timed_out, "ZooKeeper at " + settings_.servers +
                                           " cannot be reached for " + std::to_string(seconds) +
                                           " s (" + waiting_for() +
                                           "); start it, or correct coordination.connect"};
    }
    log_.warning("waiting for ZooKeeper",
                 {{"connect", settings_.servers}, {"seconds", seconds}, {"error", waiting_for()}});
    say_at += say_waiting_every;
  }
}

Task<> Session::connected() {
  const auto self = shared_from_this();
  while (true) {
    if (over_) co_return over();
    if (connection_ == Connection::connected) co_return {};
    MR_CO_CHECK(co_await changed_.wait());
  }
}

Task<> Session::begin_heartbeats() {
  MR_CO_CHECK(co_await heartbeat());
  auto loop = [](std::shared_ptr<Session> self) -> Task<> {
    co_return co_await self->heartbeat_loop();
  };
  spawn(environment_.control(), loop(shared_from_this()), "heartbeats", &background_);
  co_return {};
}

Task<> Session::heartbeat_loop() {
  while (!over_) {
    MR_CO_CHECK(co_await sleep(timeout_ / heartbeats_in_a_timeout));
    auto beat = co_await heartbeat();
    if (!beat) co_return beat.error().code == Errc::fenced ? Result<>() : beat;
  }
  co_return {};
}

// One at a time: an answer that is late says as little as none.
Task<> Session::heartbeat() {
  const auto self = shared_from_this();
  while (true) {
    MR_CO_CHECK(co_await connected());
    const auto sent = environment_.control().now();
    auto asked = client_->sync();
    MR_CO_TRY(const auto answer, co_await asked);
    if (answer.code == Code::ok) {
      const auto until = sent + timeout_ / lease_part_of_a_timeout;
      valid_until_ = std::max(valid_until(), until).time_since_epoch().count();
      co_return {};
    }
    if (answer.code == Code::session_over) co_return end_as_expired();
    if (answer.code != Code::connection_lost) {
      co_return Error{Errc::io, "ZooKeeper answers a sync with: " + answer.error};
    }
    MR_CO_CHECK(co_await sleep(retry_pause));
  }
}

void Session::on_connection(Connection now) {
  if (over_) return;
  switch (now) {
    case Connection::expired: static_cast<void>(end_as_expired()); return;
    case Connection::refused:
      log_.error("ZooKeeper refuses our authentication");
      end("ZooKeeper refuses the authentication; correct coordination.digest");
      return;
    case Connection::connecting:
      if (connection_ == Connection::connected) {
        disconnected_at_ = environment_.control().now();
        log_.warning("the connection to ZooKeeper is lost; trying to reach another server",
                     {{"session", to_string(id_)},
                      {"lease_left_ms", ms_of(valid_until() - disconnected_at_)}});
      }
      break;
    case Connection::connected:
      if (was_connected_) {
        log_.info("ZooKeeper is connected again",
                  {{"session", to_string(id_)},
                   {"server", client_->server()},
                   {"after_ms", ms_of(environment_.control().now() - disconnected_at_)}});
      }
      was_connected_ = true;
      break;
  }
  connection_ = now;
  changed_.notify_all();
}

void Session::on_watch(const std::string& path) {
  if (listener_ && !over_) listener_->on_watch(path);
}

void Session::end(std::string why) {
  over_ = true;
  why_over_ = std::move(why);
  changed_.notify_all();
  if (listener_) listener_->on_end();
}

Error Session::end_as_expired() {
  if (over_) return over();
  // Of one that was to be resumed it is no news.
  if (was_connected_) {
    log_.error("ZooKeeper has ended our session",
               {{"session", to_string(id_)},
                {"lease_left_ms", ms_of(valid_until() - environment_.control().now())}});
  }
  end("the session " + to_string(id_) + " has expired");
  return over();
}

Error Session::over() const {
  return Error{Errc::fenced,
               why_over_.empty() ? "the session is being ended" : why_over_ + "; join again"};
}

Task<> Session::wait_for_end() {
  const auto self = shared_from_this();
  while (!over_) MR_CO_CHECK(co_await changed_.wait());
  co_return {};
}

Task<> Session::close() {
  const auto self = shared_from_this();
  if (!over_) end("the session was left");
  background_.cancel();
  auto closing = on_worker(environment_.workers(), [client = std::move(client_)]() mutable {
    client.reset();
    return Result<>();
  });
  co_return co_await std::move(closing);
}

void Session::close_now() noexcept {
  if (!over_) end("the session was left");
  background_.cancel();
  client_.reset();
}

}  // namespace millrace::zookeeper
