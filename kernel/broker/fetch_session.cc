#include "kernel/broker/fetch_session.h"

#include <algorithm>
#include <utility>

#include "kernel/broker/tell.h"

namespace millrace::kernel {

namespace {

using Found = FetchGroup::Found;

Task<std::vector<Found>> read_group(std::shared_ptr<FetchGroup> group, FetchGroup::Changes changes,
                                    ReadContext context, std::shared_ptr<FetchWaiter> waiter) {
  co_return co_await group->read(std::move(changes), context, std::move(waiter));
}

}  // namespace

FetchSession::FetchSession(PartitionMap& partitions, ShardState& home, const FetchRequest& request)
    : of_follower(request.replica_id >= 0),
      partitions_(partitions),
      home_(home),
      by_topic_id_(request.by_topic_id),
      groups_(partitions.shards().size()),
      changes_(partitions.shards().size()) {
  change(request);
}

// What a group has registered with partitions is taken back where those are.
FetchSession::~FetchSession() {
  for (std::size_t at = 0; at < groups_.size(); ++at) {
    if (!groups_[at]) continue;
    tell(home_.shard(), partitions_.shards()[at]->shard(),
         [group = std::move(groups_[at])]() mutable { group.reset(); });
  }
}

void FetchSession::change(const FetchRequest& request) {
  for (const auto& topic : request.topics) {
    for (const auto& fetch : topic.partitions) {
      place({slot_of(topic.topic, fetch.partition), topic.topic, fetch});
    }
  }
  for (const auto& topic : request.forgotten) {
    for (const auto partition : topic.partitions) forget(topic.topic, partition);
  }
  if (request.forgotten.empty()) return;
  for (auto& changes : changes_) {
    std::erase_if(changes.wanted,
                  [this](const auto& wanted) { return entries_[wanted.slot].group == nowhere; });
  }
}

FetchSession::Slot FetchSession::slot_of(const TopicName& topic, std::int32_t partition) {
  const auto next = free_.empty() ? static_cast<Slot>(entries_.size()) : free_.back();
  const auto [at, is_new] = slots_.try_emplace({topic.name, topic.id, partition}, next);
  if (!is_new) return at->second;
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    free_.pop_back();
  }
  entries_[next] = {topic, partition};
  return next;
}

void FetchSession::forget(const TopicName& topic, std::int32_t partition) {
  const auto at = slots_.find({topic.name, topic.id, partition});
  if (at == slots_.end()) return;
  const auto slot = at->second;
  const auto group = entries_[slot].group;
  if (group == nowhere) {
    homeless_.erase(slot);
  } else {
    changes_[group].forgotten.push_back(slot);
  }
  slots_.erase(at);
  entries_[slot] = {};
  free_.push_back(slot);
}

// By name it is known where a partition would be, whether it exists or not.
std::size_t FetchSession::group_of(const TopicName& topic, std::int32_t partition) const {
  if (!topic.name.empty()) return partitions_.owner_of(topic.name, partition).shard().index();
  const auto* known = home_.cluster() ? home_.cluster()->find(topic) : nullptr;
  return known ? partitions_.owner_of(known->name, partition).shard().index() : nowhere;
}

void FetchSession::place(FetchGroup::Wanted wanted) {
  auto& entry = entries_[wanted.slot];
  if (entry.group == nowhere) entry.group = group_of(wanted.topic, wanted.fetch.partition);
  if (entry.group == nowhere) {
    const auto slot = wanted.slot;
    homeless_.insert_or_assign(slot, std::move(wanted));
  } else {
    changes_[entry.group].wanted.push_back(std::move(wanted));
  }
}

// A topic may have become known since.
void FetchSession::place_homeless() {
  auto wanted = std::exchange(homeless_, {});
  for (auto& [slot, one] : wanted) place(std::move(one));
}

void FetchSession::answer_homeless(std::vector<Found>& found) const {
  for (const auto& [slot, one] : homeless_) {
    auto& unknown = found.emplace_back(
        Found{.slot = slot,
              .fetched = {.partition = one.fetch.partition, .error = ErrorCode::unknown_topic_id},
              .news = true});
    unknown.fetched.aborted.emplace();
  }
}

Task<std::vector<Found>> FetchSession::read(ReadContext context,
                                            std::shared_ptr<FetchWaiter> wake) {
  place_homeless();
  std::vector<Found> found;
  answer_homeless(found);
  const auto groups = groups_.size();
  const auto first = first_group_++ % groups;  // so that no shard is served first for ever
  std::vector<std::size_t> asked;
  for (std::size_t step = 0; step < groups; ++step) {
    const auto at = (first + step) % groups;
    if (!groups_[at] && changes_[at].wanted.empty()) continue;
    if (!groups_[at]) groups_[at] = std::make_shared<FetchGroup>(*partitions_.shards()[at]);
    asked.push_back(at);
  }
  // Its waiter may be replaced, and the session end, while it reads.
  if (asked.size() == 1 && partitions_.shards()[asked.front()].get() == &home_) {
    const auto group = groups_[asked.front()];
    auto changes = std::exchange(changes_[asked.front()], {});
    auto reading = group->read(std::move(changes), context, std::move(wake));
    MR_CO_TRY(auto some, co_await std::move(reading));
    if (found.empty()) co_return std::move(some);
    std::ranges::move(some, std::back_inserter(found));
    co_return std::move(found);
  }
  std::vector<Task<std::vector<Found>>> tasks;
  for (const auto at : asked) {
    auto changes = std::exchange(changes_[at], {});
    auto make = [group = groups_[at], changes = std::move(changes), context, wake]() mutable {
      return read_group(std::move(group), std::move(changes), context, std::move(wake));
    };
    tasks.push_back(run_on(partitions_.shards()[at]->shard(), std::move(make)));
  }
  std::vector<Pending<std::vector<Found>>> reading;  // side by side
  CancelScope* scope = co_await this_scope();
  for (auto& task : tasks) reading.push_back(start(home_.shard(), std::move(task), scope));
  for (auto& one : reading) {
    MR_CO_TRY(auto some, co_await one);
    std::ranges::move(some, std::back_inserter(found));
  }
  co_return std::move(found);
}

std::vector<TopicFetched> FetchSession::answer(std::vector<Found> found) const {
  std::ranges::sort(found, {}, &Found::slot);
  std::vector<TopicFetched> topics;
  const TopicName* last = nullptr;
  for (auto& one : found) {
    const auto& topic = entries_[one.slot].topic;
    if (!last || last->name != topic.name || last->id != topic.id) {
      topics.emplace_back().topic = topic;
    }
    last = &topic;
    topics.back().partitions.push_back(std::move(one.fetched));
  }
  return topics;
}

}  // namespace millrace::kernel
