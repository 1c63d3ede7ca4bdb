#include "kernel/broker/fetch_group.h"

#include <algorithm>
#include <utility>

namespace millrace::kernel {

namespace {

// What old clients read is made in memory: so much for one of their requests, as far as a batch for
// each partition allows. Some of them cannot rotate their partitions, so all get their share.
constexpr std::uint64_t converted_bytes_max = 16UL << 20;

std::uint64_t converted_share(std::size_t partitions, std::uint64_t most) {
  return std::min(most, converted_bytes_max / std::max<std::size_t>(partitions, 1));
}

}  // namespace

void FetchGroup::Item::on_change(bool readable) {
  group_.make_due(*this);
  if (readable) group_.wake_waiter();
}

void FetchGroup::wake_waiter() {
  if (const auto waiter = std::exchange(waiter_, nullptr)) waiter->notify();
}

void FetchGroup::wake_in(Duration time) {
  auto& shard = owner_.shard();
  shard.unschedule(wake_up_);
  wake_up_ = shard.schedule(shard.now() + time, [this] {
    wake_up_ = TimerId::none;
    wake_waiter();
  });
}

void FetchGroup::make_due(Item& item) {
  if (!std::exchange(item.due, true)) due_.push_back(item.wanted.slot);
}

void FetchGroup::apply(Changes changes) {
  for (const auto slot : changes.forgotten) items_.erase(slot);
  if (!changes.forgotten.empty()) {
    std::erase_if(due_, [this](Slot slot) { return !items_.contains(slot); });
  }
  for (auto& wanted : changes.wanted) {
    auto& item = items_[wanted.slot];
    if (item) {
      item->wanted = std::move(wanted);
    } else {
      item = std::make_unique<Item>(*this, std::move(wanted));
    }
    make_due(*item);
  }
}

std::shared_ptr<Partition> FetchGroup::find(const Item& item, ErrorCode& error) const {
  const auto& topic = item.wanted.topic;
  const auto number = item.wanted.fetch.partition;
  const auto* known = owner_.cluster() ? owner_.cluster()->find(topic) : nullptr;
  if (!known || number < 0 || static_cast<std::size_t>(number) >= known->partitions.size()) {
    error =
        topic.name.empty() ? ErrorCode::unknown_topic_id : ErrorCode::unknown_topic_or_partition;
    return nullptr;
  }
  auto partition = owner_.find(known->name, number);
  if (!partition) error = ErrorCode::not_leader_or_follower;
  return partition;
}

Task<FetchGroup::Read> FetchGroup::read_one(Item& item, ReadContext context) {
  Read one{.fetched = {.partition = item.wanted.fetch.partition}};
  const auto partition = find(item, one.fetched.error);
  if (!partition) {
    one.fetched.aborted.emplace();  // as Kafka answers of what it does not know
    co_return std::move(one);
  }
  one.end = partition->readable_end(context.horizon());
  auto read = co_await partition->read(item.wanted.fetch, context);
  if (!read) {
    one.fetched.error = error_code_of(read.error());
    co_return std::move(one);
  }
  one.fetched = *std::move(read);
  one.held_back = partition->held_back(context.replica);
  if (one.fetched.error == ErrorCode::none && one.fetched.diverging_end == Offset{}) {
    partition->watch(item, std::max(one.end, item.wanted.fetch.from), context.horizon());
  }
  co_return std::move(one);
}

// As the controller has told it; a partition's leader takes no other.
std::int64_t FetchGroup::known_epoch(std::int32_t replica) const {
  const auto& cluster = owner_.cluster();
  if (replica < 0 || !cluster) return -1;
  const auto found = cluster->brokers.find(replica);
  return found == cluster->brokers.end() ? -1 : found->second.epoch;
}

// Whether the last answer said something else. An error is always told, and so is its end.
bool FetchGroup::note(Item& item, const PartitionFetched& fetched) const {
  std::optional<Told> told;
  if (fetched.error == ErrorCode::none) {
    told = Told{fetched.high_watermark, fetched.last_stable, fetched.log_start};
  }
  const bool news =
      !told || told != item.told || !fetched.records.empty() || fetched.diverging_end != Offset{};
  item.told = told;
  return news;
}

Task<std::vector<FetchGroup::Found>> FetchGroup::read(Changes changes, ReadContext context,
                                                      std::shared_ptr<FetchWaiter> waiter) {
  while (reading_) MR_CO_CHECK(co_await read_.wait());
  const ReadTurn turn(*this);
  apply(std::move(changes));
  context.known_epoch = known_epoch(context.replica);
  waiter_ = std::move(waiter);
  if (std::exchange(isolation_, context.isolation) != context.isolation) {
    for (const auto& [slot, item] : items_) make_due(*item);
  }

  const auto due = std::exchange(due_, {});
  context.converted_bytes_max = converted_share(due.size(), context.converted_bytes_max);
  for (const auto slot : due) items_.at(slot)->due = false;
  std::vector<Found> found;
  found.reserve(due.size());
  std::vector<Item*> starved;  // there is more, but not within bytes_max
  std::vector<Item*> served;
  std::optional<Duration> held_back;
  for (const auto slot : due) {
    auto& item = *items_.at(slot);
    MR_CO_TRY(auto one, co_await read_one(item, context));
    auto& fetched = one.fetched;
    const auto bytes = fetched.records.size();
    context.bytes_max -= std::min<std::uint64_t>(bytes, context.bytes_max);
    if (bytes > 0) context.at_least_one = false;
    const bool more = item.wanted.fetch.from < one.end;
    if (bytes > 0 || fetched.error != ErrorCode::none || fetched.diverging_end != Offset{}) {
      served.push_back(&item);
    } else if (more) {
      starved.push_back(&item);
      if (one.held_back > Duration::zero()) {
        held_back = std::min(held_back.value_or(one.held_back), one.held_back);
      }
    }
    const bool news = note(item, fetched);
    found.push_back({slot, std::move(fetched), news});
  }
  for (auto* item : starved) make_due(*item);
  for (auto* item : served) make_due(*item);
  if (held_back) wake_in(*held_back);
  co_return std::move(found);
}

}  // namespace millrace::kernel
