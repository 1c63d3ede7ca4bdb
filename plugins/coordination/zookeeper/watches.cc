#include "watches.h"

#include <utility>

#include "connect.h"

namespace millrace::zookeeper {

namespace {

// When a connection is made again, the library names all watches in one packet, each up to twice;
// the server takes 1 MiB.
constexpr std::size_t watched_bytes_max = 400'000;
constexpr std::size_t bytes_beside_a_path = 4;

}  // namespace

WatchedTree::WatchedTree(std::shared_ptr<Session> session, std::shared_ptr<std::int64_t> revisions,
                         std::string prefix)
    : session_(std::move(session)), revisions_(std::move(revisions)), prefix_(std::move(prefix)) {
  stale_.insert(prefix_);
}

bool WatchedTree::touch(const std::string& path) {
  // What is not known below is found by reading its parent, whose watch fires as well.
  if (path != prefix_ && !nodes_.contains(path)) return false;
  stale_.insert(path);
  return true;
}

Task<> WatchedTree::refresh() {
  MR_CO_TRY(const auto turn, co_await reading_.lock());
  while (!stale_.empty()) {
    std::vector<std::string> paths;
    while (!stale_.empty() && paths.size() < Session::requests_at_once) {
      paths.push_back(std::move(stale_.extract(stale_.begin()).value()));
    }
    auto read = co_await read_some(paths);
    if (read) continue;
    for (auto& path : paths) stale_.insert(std::move(path));
    if (session_->is_over() || read.error().code != Errc::closed) co_return read;
    MR_CO_CHECK(co_await sleep(Session::retry_pause));
  }
  co_return {};
}

// Errc::closed: the connection was lost, and nothing was taken.
Task<> WatchedTree::read_some(std::vector<std::string> paths) {
  MR_CO_CHECK(co_await session_->connected());
  std::vector<std::pair<Pending<Answer>, Pending<Answer>>> asked;
  asked.reserve(paths.size());
  auto& client = session_->client();
  for (const auto& path : paths) {
    // Of the prefix its making matters as well, so it is watched also where it is not.
    auto node = path == prefix_ ? client.exists(path, true) : client.read(path, true);
    asked.emplace_back(std::move(node), client.children(path, true));
  }
  Result<> ended;
  std::vector<std::pair<Answer, Answer>> answers;
  for (auto& [node, children] : asked) {
    MR_CO_TRY(auto first, co_await node);
    MR_CO_TRY(auto second, co_await children);
    for (const auto* answer : {&first, &second}) {
      if (answer->code == Code::ok || answer->code == Code::no_node) continue;
      if (answer->code == Code::session_over) co_return session_->end_as_expired();
      const auto code = answer->code == Code::connection_lost ? Errc::closed : Errc::io;
      ended = Error{code, prefix_ + ": ZooKeeper says: " + answer->error};
    }
    answers.emplace_back(std::move(first), std::move(second));
  }
  if (!ended) co_return ended;
  bool changed = revision_ == 0;
  for (std::size_t at = 0; at < paths.size(); ++at) {
    if (take(paths[at], answers[at].first, answers[at].second)) changed = true;
  }
  if (changed) revision_ = ++*revisions_;
  co_return {};
}

bool WatchedTree::take(const std::string& path, const Answer& node, const Answer& children) {
  // Gone between the two: its watch has fired, if it was there, or its parent's has.
  if (node.code != Code::ok || children.code != Code::ok) {
    if (node.code == Code::ok) stale_.insert(path);
    return forget(path);
  }
  const Node now{.created = node.stat.created,
                 .changed = node.stat.changed,
                 .children_changed = children.stat.children_changed};
  auto found = nodes_.find(path);
  bool changed = found == nodes_.end();
  if (changed) {
    found = nodes_.emplace(path, now).first;
    path_bytes_ += path.size() + bytes_beside_a_path;
  } else {
    changed = found->second != now;
    found->second = now;
  }
  for (const auto& name : children.names) {
    auto child = (path == "/" ? path : path + '/') + name;
    if (!nodes_.contains(child)) stale_.insert(std::move(child));
  }
  return changed;
}

// With everything below it.
bool WatchedTree::forget(std::string_view path) {
  bool was = false;
  const auto drop = [this, &was](auto at) {
    path_bytes_ -= at->first.size() + bytes_beside_a_path;
    was = true;
    return nodes_.erase(at);
  };
  if (const auto found = nodes_.find(path); found != nodes_.end()) drop(found);
  const auto below = path == "/" ? std::string(path) : std::string(path) + '/';
  auto at = nodes_.lower_bound(below);
  while (at != nodes_.end() && at->first.starts_with(below)) at = drop(at);
  return was;
}

Watches::Watches(std::shared_ptr<Session> session, std::shared_ptr<std::int64_t> revisions)
    : session_(std::move(session)), revisions_(std::move(revisions)) {
  session_->listen(*this);
}

Watches::~Watches() { session_->unlisten(); }

std::size_t Watches::path_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& [prefix, tree] : trees_) bytes += tree->path_bytes();
  return bytes;
}

Task<> Watches::refresh(WatchedTree& tree) {
  MR_CO_CHECK(co_await tree.refresh());
  if (path_bytes() > watched_bytes_max) {
    co_return Error{Errc::too_large,
                    tree.prefix() +
                        ": there is too much below it to be watched; ask for changes "
                        "of something smaller"};
  }
  co_return {};
}

Task<Seen> Watches::next_change(std::shared_ptr<Watches> self, std::string prefix, Seen seen) {
  if (prefix.size() > 1 && prefix.ends_with('/')) prefix.pop_back();
  if (prefix != "/" && !valid_path(prefix)) {
    co_return Error{Errc::invalid_argument, "'" + prefix + "' is no path"};
  }
  auto& tree = self->trees_[prefix];
  if (!tree) tree = std::make_unique<WatchedTree>(self->session_, self->revisions_, prefix);
  while (true) {
    if (self->session_->is_over()) co_return self->session_->over();
    MR_CO_CHECK(co_await self->refresh(*tree));
    if (tree->revision() != seen.revision) co_return Seen{tree->revision()};
    if (tree->is_stale()) continue;
    MR_CO_CHECK(co_await self->changed_.wait());
  }
}

void Watches::on_watch(const std::string& path) {
  bool ours = false;
  for (const auto& [prefix, tree] : trees_) ours = tree->touch(path) || ours;
  if (ours) changed_.notify_all();
}

void Watches::on_end() { changed_.notify_all(); }

}  // namespace millrace::zookeeper
