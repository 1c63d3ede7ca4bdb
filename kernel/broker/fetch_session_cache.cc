#include "kernel/broker/fetch_session_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace millrace::kernel {

namespace {

std::pair<bool, std::size_t> rank(const FetchSession& session) {
  return {session.of_follower, session.size()};
}

}  // namespace

std::shared_ptr<FetchSession> FetchSessionCache::find(std::int32_t id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

bool FetchSessionCache::add(std::shared_ptr<FetchSession> session, MonoTime now) {
  if (sessions_.size() >= slots_) {
    const auto victim = who_gives_way(*session, now);
    if (victim == sessions_.end()) {
      metrics_.refused.add();
      return false;
    }
    remove(victim->first);
    metrics_.displaced.add();
  }
  session->id = new_id();
  session->created = now;
  session->last_used = now;
  const auto id = session->id;
  sessions_.emplace(id, std::move(session));
  metrics_.open.add(1);
  return true;
}

FetchSessionCache::Sessions::iterator FetchSessionCache::who_gives_way(const FetchSession& newcomer,
                                                                       MonoTime now) {
  const auto stalest = std::ranges::min_element(
      sessions_, {}, [](const auto& entry) { return entry.second->last_used; });
  if (stalest == sessions_.end() || now - stalest->second->last_used > displaceable_after) {
    return stalest;
  }
  auto weakest = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    const auto& session = *at->second;
    const bool outranked = newcomer.of_follower && !session.of_follower;
    if (!outranked && session.last_used - session.created <= displaceable_after) continue;
    if (weakest == sessions_.end() || rank(session) < rank(*weakest->second)) weakest = at;
  }
  if (weakest != sessions_.end() && rank(*weakest->second) < rank(newcomer)) return weakest;
  return sessions_.end();
}

// Random, so that a client of an earlier broker does not meet another's session.
std::int32_t FetchSessionCache::new_id() {
  const auto numbers =
      static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()) / shards_;
  while (true) {
    const auto id = static_cast<std::int32_t>(random_.next() % numbers * shards_ + shard_);
    if (id != 0 && !sessions_.contains(id)) return id;
  }
}

}  // namespace millrace::kernel
