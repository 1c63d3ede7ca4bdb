#include <millrace/testing/sim_coordination.h>

#include <algorithm>
#include <utility>

#include "sim_key_tree.h"

namespace millrace::testing {

namespace {

constexpr auto heartbeats_in_a_timeout = 6;
constexpr auto lease_part_of_a_timeout = 2;
constexpr auto patience_in_timeouts = 3;

Error over() { return Error{Errc::fenced, "the simulated session is over; join again"}; }

}  // namespace

/// What the service knows, and who is to be told.
struct SimCoordination::State {
  struct Session {
    std::string node;
    std::int32_t broker = -1;
    MonoTime heard{};
  };
  struct Listener {
    Shard* control;
    std::weak_ptr<Event> event;
  };

  State(SimWorld& of_world, SimCoordinationSettings given) : world(of_world), settings(given) {}

  bool reaches(const SimEnvironment& node) const {
    return !stopped && !node.crashed() && !cut.contains(node.name());
  }
  Duration delay() {
    const auto spread = settings.delay_max - settings.delay_min;
    const auto part = world.random().below(static_cast<std::uint64_t>(spread.count()) + 1);
    return settings.delay_min + Duration(static_cast<Duration::rep>(part));
  }
  // Everyone who waits looks again, on a thread of its own.
  void tell_all() {
    for (const auto& listener : listeners) {
      listener.control->post([event = listener.event] {
        if (const auto waiting = event.lock()) waiting->notify_all();
      });
    }
    std::erase_if(listeners, [](const auto& listener) { return listener.event.expired(); });
  }
  void end(std::int64_t session) {
    if (sessions.erase(session) == 0) return;
    tree.remove_all_of(session);
    tell_all();
  }
  void expire_due() {
    if (stopped) return;
    std::vector<std::int64_t> late;
    for (const auto& [id, session] : sessions) {
      if (world.now() - session.heard > settings.session_timeout) late.push_back(id);
    }
    for (const auto id : late) {
      world.note("coordination: the session of " + sessions.at(id).node + " expires");
      end(id);
    }
  }

  SimWorld& world;
  SimCoordinationSettings settings;
  SimKeyTree tree;
  std::map<std::int64_t, Session> sessions;
  std::int64_t sessions_made = 0;
  std::set<std::string> cut;
  bool stopped = false;
  std::vector<Listener> listeners;
};

namespace {

/// A session as its broker sees it. Calls that wait hold it, so that a client may be destroyed
/// while they do.
struct Held {
  std::int64_t id = 0;
  MonoTime valid_until{};
  bool is_over = false;
  std::shared_ptr<Event> changed = std::make_shared<Event>();
};

class HeldLease final : public Lease {
 public:
  explicit HeldLease(std::shared_ptr<Held> held) : held_(std::move(held)) {}
  MonoTime valid_until() const noexcept override { return held_->valid_until; }
  std::int64_t epoch() const noexcept override { return held_->id; }
  Task<> lost() override { return wait(held_); }

 private:
  static Task<> wait(std::shared_ptr<Held> held) {
    while (!held->is_over) MR_CO_CHECK(co_await held->changed->wait());
    co_return {};
  }
  std::shared_ptr<Held> held_;
};

}  // namespace

class SimCoordination::Client final : public Coordination {
 public:
  Client(std::shared_ptr<State> state, SimEnvironment& node)
      : state_(std::move(state)), node_(node) {}
  ~Client() override {
    if (held_) leave(*state_, node_, *held_);
  }

  Task<std::unique_ptr<Lease>> join(Member self) override {
    if (held_) leave(*state_, node_, *std::exchange(held_, nullptr));
    auto held = std::make_shared<Held>();
    auto joining = enter(state_, &node_, held, self.broker_id);
    MR_CO_CHECK(co_await std::move(joining));
    held_ = held;
    co_return std::make_unique<HeldLease>(std::move(held));
  }

  Task<Versioned> get(std::string key) override {
    return ask<Versioned>(
        [key = std::move(key)](SimKeyTree& tree, std::int64_t) { return tree.get(key); });
  }
  Task<std::vector<std::string>> list(std::string prefix) override {
    using Names = std::vector<std::string>;
    return ask<Names>([prefix = std::move(prefix)](SimKeyTree& tree, std::int64_t) {
      return Result<Names>(tree.children(prefix));
    });
  }
  Task<std::vector<Version>> commit(std::vector<Write> writes) override {
    return ask<std::vector<Version>>(
        [state = state_, writes = std::move(writes)](SimKeyTree& tree, std::int64_t session) {
          auto done = tree.commit(writes, session);
          if (done) state->tell_all();
          return done;
        });
  }
  Task<Seen> next_change(std::string prefix, Seen seen) override {
    MR_CO_TRY(const auto held, session());
    const auto state = state_;
    auto* node = &node_;
    while (true) {
      auto asked = ask_of<Seen>(state, node, held, [&prefix](SimKeyTree& tree, std::int64_t) {
        return Result<Seen>(tree.seen(prefix));
      });
      MR_CO_TRY(const auto now, co_await std::move(asked));
      if (now != seen) co_return now;
      // What changed while the answer came back has told nobody here.
      if (state->tree.seen(prefix) != seen) continue;
      MR_CO_CHECK(co_await held->changed->wait());
    }
  }

 private:
  Result<std::shared_ptr<Held>> session() const {
    if (!held_) return Error{Errc::closed, "coordination has not been joined"};
    if (held_->is_over) return over();
    return held_;
  }
  template <class T, class F>
  Task<T> ask(F what) {
    MR_CO_TRY(auto held, session());
    auto asked = ask_of<T>(state_, &node_, std::move(held), std::move(what));
    co_return co_await std::move(asked);
  }

  // One way between a broker and the service.
  static Task<> travel(std::shared_ptr<State> state, SimEnvironment* node,
                       std::shared_ptr<Held> held) {
    MR_CO_CHECK(co_await sleep(state->delay()));
    while (!state->reaches(*node)) {
      if (held->is_over) co_return over();  // nobody would wake it
      MR_CO_CHECK(co_await held->changed->wait());
    }
    co_return {};
  }
  template <class T, class F>
  static Task<T> ask_of(std::shared_ptr<State> state, SimEnvironment* node,
                        std::shared_ptr<Held> held, F what) {
    MR_CO_CHECK(co_await travel(state, node, held));
    state->expire_due();
    if (!state->sessions.contains(held->id)) {
      end(*held);
      co_return over();
    }
    auto answer = what(state->tree, held->id);
    MR_CO_CHECK(co_await travel(state, node, held));
    if (held->is_over) co_return over();
    co_return std::move(answer);
  }

  static Task<> enter(std::shared_ptr<State> state, SimEnvironment* node,
                      std::shared_ptr<Held> held, std::int32_t broker) {
    const auto timeout = state->settings.session_timeout;
    const auto give_up_at = node->control().now() + patience_in_timeouts * timeout;
    state->listeners.push_back({&node->control(), held->changed});
    while (true) {
      const auto sent = node->control().now();
      MR_CO_CHECK(co_await travel(state, node, held));
      state->expire_due();
      const auto taken = std::ranges::any_of(
          state->sessions, [broker](const auto& entry) { return entry.second.broker == broker; });
      if (!taken) {
        held->id = ++state->sessions_made;
        state->sessions[held->id] = {node->name(), broker, state->world.now()};
        held->valid_until = sent + timeout / lease_part_of_a_timeout;
        spawn(node->control(), heartbeats(state, node, held), "heartbeats");
        co_return {};
      }
      if (node->control().now() > give_up_at) {
        co_return Error{Errc::conflict, "a broker with broker.id = " + std::to_string(broker) +
                                            " has a session already"};
      }
      MR_CO_CHECK(co_await sleep(timeout / heartbeats_in_a_timeout));
    }
  }
  static Task<> heartbeats(std::shared_ptr<State> state, SimEnvironment* node,
                           std::shared_ptr<Held> held) {
    const auto timeout = state->settings.session_timeout;
    while (!held->is_over) {
      MR_CO_CHECK(co_await sleep(timeout / heartbeats_in_a_timeout));
      const auto sent = node->control().now();
      const auto there = co_await travel(state, node, held);
      if (held->is_over) co_return {};
      MR_CO_CHECK(there);
      state->expire_due();
      const auto session = state->sessions.find(held->id);
      if (session == state->sessions.end()) {
        end(*held);
        co_return {};
      }
      session->second.heard = state->world.now();
      const auto back = co_await travel(state, node, held);
      if (held->is_over) co_return {};
      MR_CO_CHECK(back);
      held->valid_until = std::max(held->valid_until, sent + timeout / lease_part_of_a_timeout);
    }
    co_return {};
  }
  static void end(Held& held) {
    held.is_over = true;
    held.changed->notify_all();
  }
  static void leave(State& state, SimEnvironment& node, Held& held) {
    if (state.reaches(node)) state.end(held.id);
    end(held);
  }

  std::shared_ptr<State> state_;
  SimEnvironment& node_;
  std::shared_ptr<Held> held_;
};

SimCoordination::SimCoordination(SimWorld& world, SimCoordinationSettings settings)
    : state_(std::make_shared<State>(world, settings)) {}

SimCoordination::~SimCoordination() = default;

std::unique_ptr<Coordination> SimCoordination::connect(SimEnvironment& node) {
  return std::make_unique<Client>(state_, node);
}

void SimCoordination::cut_off(const SimEnvironment& node) { state_->cut.insert(node.name()); }

void SimCoordination::reach(const SimEnvironment& node) {
  state_->cut.erase(node.name());
  state_->tell_all();
}

void SimCoordination::expire(const SimEnvironment& node) {
  const auto found = std::ranges::find_if(
      state_->sessions, [&node](const auto& entry) { return entry.second.node == node.name(); });
  if (found != state_->sessions.end()) state_->end(found->first);
}

void SimCoordination::stop() { state_->stopped = true; }

void SimCoordination::go_on() {
  state_->stopped = false;
  for (auto& [id, session] : state_->sessions) session.heard = state_->world.now();
  state_->tell_all();
}

std::optional<std::string> SimCoordination::value(const std::string& key) {
  state_->expire_due();
  const auto found = state_->tree.get(key);
  return found ? std::optional(found->value) : std::nullopt;
}

}  // namespace millrace::testing
