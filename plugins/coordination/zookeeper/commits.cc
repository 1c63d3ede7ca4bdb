#include "commits.h"

#include <utility>

namespace millrace::zookeeper {

namespace {

// The server's jute.maxbuffer is 1,048,575 bytes unless it was changed.
constexpr std::size_t packet_bytes_max = 1'000'000;
constexpr auto attempts_max = 50;
constexpr std::int32_t unknown_version = -1;

}  // namespace

Task<std::vector<Version>> Commits::commit(std::shared_ptr<Commits> self,
                                           std::vector<Write> writes) {
  if (writes.empty()) co_return std::vector<Version>();
  auto& session = *self->session_;
  MR_CO_TRY(const auto turn, co_await self->committing_.lock());
  bool fresh = false;
  for (auto attempts = 0; attempts < attempts_max; ++attempts) {
    MR_CO_TRY(auto known, co_await self->learn(writes));
    auto plan = plan_commit(writes, std::move(known), session.id().id);
    if (!plan) {
      // The server that we ask may be behind: only what it knows after a sync is refused.
      if (fresh || plan.error().code == Errc::invalid_argument) co_return plan.error();
      MR_CO_CHECK(co_await self->sync());
      fresh = true;
      continue;
    }
    if (plan->bytes > packet_bytes_max) {
      co_return Error{Errc::too_large,
                      "a commit of " + std::to_string(writes.size()) + " keys from " +
                          writes.front().key + " on takes " + std::to_string(plan->bytes) +
                          " bytes, and ZooKeeper does at most " + std::to_string(packet_bytes_max) +
                          " all or nothing; nothing was written: make several commits of it"};
    }
    MR_CO_TRY(const bool done, co_await self->attempt(std::move(plan->ops)));
    if (done) co_return std::move(plan->versions);
    MR_CO_CHECK(co_await self->sync());
    fresh = true;
  }
  co_return Error{Errc::conflict, writes.front().key + ": others change it faster than we can"};
}

Task<KnownNodes> Commits::learn(const std::vector<Write>& writes) {
  KnownNodes known;
  while (true) {
    auto paths = unknown_nodes(writes, known);
    if (paths.empty()) co_return std::move(known);
    MR_CO_CHECK(co_await learn_more(std::move(paths), known));
  }
}

Task<> Commits::learn_more(std::vector<std::string> paths, KnownNodes& known) {
  MR_CO_TRY(const auto found,
            co_await session_->ask_each(paths, [](Client& client, const std::string& path) {
              return client.exists(path);
            }));
  std::vector<std::string> unclear;  // a folder, or a key with no bytes
  for (std::size_t at = 0; at < paths.size(); ++at) {
    const auto& [code, error, value, folder, stat, names, failed] = found[at];
    if (code != Code::ok && code != Code::no_node) co_return refused(found[at], {});
    known[paths[at]] = {.there = code == Code::ok,
                        .owner = stat.owner,
                        .version = stat.version,
                        .children = stat.children};
    if (code == Code::ok && stat.bytes == 0) unclear.push_back(paths[at]);
  }
  MR_CO_TRY(const auto read,
            co_await session_->ask_each(unclear, [](Client& client, const std::string& path) {
              return client.read(path);
            }));
  for (std::size_t at = 0; at < unclear.size(); ++at) {
    auto& node = known[unclear[at]];
    if (read[at].code == Code::ok) {
      node.folder = read[at].folder;
      node.version = read[at].stat.version;
    } else if (read[at].code == Code::no_node) {
      node = {};
    } else if (read[at].code == Code::no_permission) {
      node.folder = true;  // what we may not read is no key of ours
    } else {
      co_return refused(read[at], {});
    }
  }
  co_return {};
}

// True when the multi was done, false when another plan is needed.
Task<bool> Commits::attempt(std::vector<Op> ops) {
  if (mark_version_ == unknown_version) MR_CO_CHECK(co_await read_mark());
  // Whatever ends this early, a cancelled wait too, leaves the mark to be read again.
  const auto version = std::exchange(mark_version_, unknown_version);
  ops.insert(ops.begin(),
             {.kind = Op::Kind::set, .path = mark_, .value = mark_value_, .version = version});
  bool in_doubt = false;
  while (true) {
    MR_CO_CHECK(co_await session_->connected());
    auto asked = session_->client().multi(ops);
    MR_CO_TRY(const auto answer, co_await asked);
    const bool at_mark = answer.failed == 0;
    switch (answer.code) {
      case Code::ok: mark_version_ = version + 1; co_return true;
      case Code::connection_lost:
        in_doubt = true;
        MR_CO_CHECK(co_await sleep(Session::retry_pause));
        MR_CO_CHECK(co_await read_mark());
        if (mark_version_ != version) co_return true;
        mark_version_ = unknown_version;
        continue;
      case Code::bad_version:
        // Of a multi that was thought lost, and came to the server after the mark was read.
        if (at_mark) co_return in_doubt;
        break;
      case Code::no_node:
        if (at_mark) {
          co_return Error{Errc::fenced,
                          mark_ + ", the mark of our session, was removed; nothing was written"};
        }
        break;
      case Code::node_exists:
      case Code::not_empty:
      case Code::no_children_of_ephemerals: break;
      case Code::session_over: {
        auto over = session_->end_as_expired();
        over.detail += "; whether the last commit was done is not known";
        co_return over;
      }
      case Code::no_permission:
      case Code::other: mark_version_ = version; co_return refused(answer, ops);
    }
    mark_version_ = version;
    co_return false;
  }
}

// Behind a sync: what an earlier connection brought to the leader is in it.
Task<> Commits::read_mark() {
  MR_CO_CHECK(co_await sync());
  MR_CO_TRY(const auto mark,
            co_await session_->ask([this](Client& client) { return client.read(mark_); }));
  if (mark.code != Code::ok) co_return refused(mark, {});
  mark_version_ = mark.stat.version;
  co_return {};
}

Task<> Commits::sync() {
  MR_CO_TRY(const auto answer,
            co_await session_->ask([](Client& client) { return client.sync(); }));
  if (answer.code != Code::ok) co_return refused(answer, {});
  co_return {};
}

Error Commits::refused(const Answer& answer, const std::vector<Op>& ops) const {
  const auto& path = answer.failed < ops.size() ? ops[answer.failed].path : mark_;
  if (answer.code == Code::no_permission) {
    return Error{Errc::io, path +
                               ": ZooKeeper does not let us write it: its access list wants "
                               "another coordination.digest, or gives read access alone"};
  }
  return Error{Errc::io, path + ": ZooKeeper says: " + answer.error};
}

}  // namespace millrace::zookeeper
