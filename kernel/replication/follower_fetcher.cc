#include "kernel/replication/follower_fetcher.h"

#include <algorithm>
#include <limits>

#include "kernel/env/spawn_held.h"

namespace millrace::kernel {

namespace {

constexpr Duration backoff_first = std::chrono::milliseconds(50);
constexpr Duration retry_wait_max = std::chrono::milliseconds(100);
constexpr Duration connect_time_max = std::chrono::seconds(10);
// A leader that does not answer a poll for so much longer than it was asked to wait is not there.
constexpr Duration answer_time_max = std::chrono::seconds(10);

// What a rate holds back comes in shares of a tenth of a second.
constexpr std::int64_t shares_per_second = 10;
constexpr std::int64_t share_bytes_min = 64 << 10;
constexpr Duration look_again_after = std::chrono::seconds(1);

// What a leader that has not heard of a change yet answers, or one that has heard of a later one.
bool passes_by_itself(ErrorCode error) {
  return error == ErrorCode::not_leader_or_follower || error == ErrorCode::fenced_leader_epoch ||
         error == ErrorCode::unknown_leader_epoch ||
         error == ErrorCode::unknown_topic_or_partition || error == ErrorCode::unknown_topic_id;
}

// Another role may have been ordered.
ErrorCode trouble_of(const Error& error) {
  const bool role = error.code == Errc::fenced || error.code == Errc::closed;
  return role ? ErrorCode::not_leader_or_follower : ErrorCode::kafka_storage_error;
}

std::uint64_t bytes_of(const FetchAnswer& answer) {
  std::uint64_t bytes = 0;
  for (const auto& topic : answer.topics) {
    for (const auto& fetched : topic.partitions) bytes += fetched.records.size();
  }
  return bytes;
}

bool same(const FollowerStep& a, const FollowerStep& b) {
  return a.next == b.next && a.last_epoch == b.last_epoch;
}

}  // namespace

FollowerFetcher::FollowerFetcher(const FetcherHost& host, std::int32_t leader, RateLimit* limit)
    : host_(host),
      leader_(leader),
      limit_(limit),
      backoff_(backoff_first, host.settings.backoff_max) {}

void FollowerFetcher::start() { spawn_held(running_, host_.shard, run(), "follower", &scope_); }

Task<> FollowerFetcher::close() {
  scope_.cancel();
  for (const auto& [id, follower] : followers_) {
    follower->removed = true;
    host_.shard.unschedule(std::exchange(follower->retry, TimerId::none));
  }
  followers_.clear();
  due_.clear();
  CancelScope never_cancelled;
  auto ending = running_.close().within(never_cancelled);
  co_return co_await std::move(ending);
}

// ---- which partitions ----

void FollowerFetcher::add(std::shared_ptr<Partition> partition, Epoch epoch) {
  const auto& id = partition->id();
  const auto found = followers_.find(id);
  if (found != followers_.end()) {
    if (found->second->partition == partition && found->second->epoch == epoch) return;
    remove(id);
  }
  if (!partition->topic_id().is_none()) names_[partition->topic_id()] = id.topic;
  auto follower = std::make_shared<Follower>(
      Follower{.partition = partition,
               .epoch = epoch,
               .backoff = Backoff(backoff_first, host_.settings.backoff_max)});
  followers_.emplace(id, follower);
  due_.push_back(std::move(follower));
  interrupt();
}

void FollowerFetcher::remove(const TopicPartition& id) {
  const auto found = followers_.find(id);
  if (found == followers_.end()) return;
  const auto follower = found->second;
  followers_.erase(found);
  follower->removed = true;
  if (follower->retry != TimerId::none) --retrying_;
  host_.shard.unschedule(std::exchange(follower->retry, TimerId::none));
  if (follower->named) forget(id, follower->partition->topic_id());
  std::erase(due_, follower);
}

void FollowerFetcher::brokers_changed() {
  if (address_ && host_.address_of(leader_) != address_) interrupt();
  changed_.notify_all();
}

void FollowerFetcher::make_due(const FollowerRef& follower) {
  if (!std::exchange(follower->due, true)) due_.push_back(follower);
}

void FollowerFetcher::forget(const TopicPartition& id, const Uuid& topic_id) {
  if (session_epoch_ == 0) return;
  forgotten_.push_back({{id.topic, topic_id}, {id.partition}});
}

// Somebody waits for what the poll does not ask about. Its answer may hold what is not answered
// again, so the next request names everything.
void FollowerFetcher::interrupt() {
  changed_.notify_all();
  if (!polling_) return;
  interrupted_ = true;
  polling_->cancel();
}

// ---- the poll ----

Task<> FollowerFetcher::run() {
  while (true) {
    if (followers_.empty()) {
      MR_CO_CHECK(co_await changed_.wait());
      continue;
    }
    if (limit_) MR_CO_CHECK(co_await held_back());
    auto fetched = co_await fetch_once();
    if (fetched) {
      backoff_ = Backoff(backoff_first, host_.settings.backoff_max);
      continue;
    }
    if (scope_.cancelled()) co_return {};
    tell(fetched.error());
    peer_.reset();
    begin_session();
    session_id_ = 0;
    auto waiting = with_deadline(changed_.wait(), backoff_.next());
    static_cast<void>(co_await std::move(waiting));
  }
}

// Another rate may be set meanwhile.
Task<> FollowerFetcher::held_back() {
  while (true) {
    const auto time = limit_->wait(host_.shard.now());
    if (time <= Duration::zero()) co_return {};
    MR_CO_CHECK(co_await sleep(std::min(time, look_again_after)));
  }
}

// Little at a time, so that what moves keeps to its rate also for a moment.
std::int32_t FollowerFetcher::at_once(std::int32_t bytes_max) const noexcept {
  if (!limit_) return bytes_max;
  const auto share = std::max(limit_->rate() / shares_per_second, share_bytes_min);
  return static_cast<std::int32_t>(std::min<std::int64_t>(share, bytes_max));
}

void FollowerFetcher::begin_session() noexcept {
  session_epoch_ = 0;
  first_poll_ = true;
  forgotten_.clear();
  for (const auto& [id, follower] : followers_) {
    follower->named = false;
    if (follower->retry == TimerId::none) make_due(follower);
  }
}

Task<> FollowerFetcher::connect() {
  address_ = host_.address_of(leader_);
  if (!address_) {
    co_return Error{Errc::closed, "broker " + std::to_string(leader_) + " is not known to live"};
  }
  auto connecting = with_deadline(host_.peers.connect(*address_), connect_time_max);
  MR_CO_TRY(peer_, co_await std::move(connecting));
  begin_session();
  session_id_ = 0;
  co_return {};
}

Task<> FollowerFetcher::fetch_once() {
  if (peer_ && host_.address_of(leader_) != address_) peer_.reset();
  if (!peer_) MR_CO_CHECK(co_await connect());
  auto request = make_request();
  if (session_epoch_ == 0 && request.topics.empty()) {
    co_return co_await changed_.wait();  // all of them wait for their time to try again
  }
  const bool opens = session_epoch_ == 0;
  interrupted_ = false;
  auto answer = co_await ask(std::move(request));
  if (interrupted_) {
    interrupted_ = false;
    begin_session();
    co_return {};
  }
  if (!answer) co_return answer.error();
  if (answer->error != ErrorCode::none) {
    host_.log.debug("a fetch session is over, another one begins",
                    {{"leader", leader_}, {"error", name_of(answer->error)}});
    if (opens) co_return Error{Errc::closed, std::string(name_of(answer->error))};
    begin_session();
    session_id_ = 0;
    co_return {};
  }
  if (!trouble_.empty()) {
    host_.log.info("fetches from the leader again", {{"leader", leader_}});
    trouble_.clear();
  }
  if (opens) session_id_ = answer->session_id;
  if (session_id_ != 0) {
    session_epoch_ =
        session_epoch_ == std::numeric_limits<std::int32_t>::max() ? 1 : session_epoch_ + 1;
  }
  auto taken = co_await take(*std::move(answer));
  if (session_id_ == 0) begin_session();  // none was granted
  first_poll_ = false;
  co_return std::move(taken);
}

Task<FetchAnswer> FollowerFetcher::ask(FetchRequest request) {
  CancelScope poll(co_await this_scope());
  polling_ = &poll;
  const auto limit = request.wait_max + answer_time_max;
  auto asking = with_deadline(peer_->fetch(std::move(request)), limit).within(poll);
  auto answer = co_await std::move(asking);
  polling_ = nullptr;
  co_return std::move(answer);
}

// The first answer opens the session, and must not be waited for; who tries again does not wait for
// those that rest.
Duration FollowerFetcher::wait_max() const noexcept {
  if (first_poll_) return Duration::zero();
  return retrying_ == 0 ? host_.settings.wait_max
                        : std::min(host_.settings.wait_max, retry_wait_max);
}

FetchRequest FollowerFetcher::make_request() {
  FetchRequest request{.replica_id = host_.broker,
                       .replica_epoch = host_.broker_epoch(),
                       .wait_max = wait_max(),
                       .bytes_min = host_.settings.bytes_min,
                       .bytes_max = at_once(host_.settings.bytes_max),
                       .session_id = session_id_,
                       .session_epoch = session_epoch_,
                       .by_topic_id = true};
  auto due = std::exchange(due_, {});
  std::ranges::sort(due, {}, [](const FollowerRef& one) { return one->partition->id(); });
  for (const auto& follower : due) {
    follower->due = false;
    if (!follower->removed) name(request, follower);
  }
  request.forgotten = std::exchange(forgotten_, {});
  return request;
}

void FollowerFetcher::name(FetchRequest& request, const FollowerRef& follower) {
  const auto step = follower->partition->following(follower->epoch);
  if (!step) {
    // Another role has been ordered, and is on its way here; or its log takes nothing any more.
    return retry_later(follower, trouble_of(step.error()), step.error().detail);
  }
  const auto& id = follower->partition->id();
  std::erase_if(forgotten_, [&id](const TopicForgotten& one) {
    return one.topic.name == id.topic && one.partitions.front() == id.partition;
  });
  if (request.topics.empty() || request.topics.back().topic.name != id.topic) {
    request.topics.push_back({{id.topic, follower->partition->topic_id()}, {}});
  }
  request.topics.back().partitions.push_back(
      {.partition = id.partition,
       .current_leader_epoch = follower->epoch,
       .from = step->next,
       .last_fetched_epoch = step->last_epoch,
       .log_start = follower->partition->log_start(),
       .high_watermark = follower->partition->high_watermark(),
       .bytes_max = at_once(host_.settings.partition_bytes_max)});
  follower->named = true;
  follower->told = *step;
  follower->told_start = follower->partition->log_start();
}

// ---- answers ----

FollowerFetcher::FollowerRef FollowerFetcher::find(const TopicName& topic,
                                                   std::int32_t partition) const {
  auto name = topic.name;
  if (name.empty()) {
    const auto known = names_.find(topic.id);
    if (known == names_.end()) return nullptr;
    name = known->second;
  }
  const auto found = followers_.find({std::move(name), partition});
  return found == followers_.end() ? nullptr : found->second;
}

Task<> FollowerFetcher::take(FetchAnswer answer) {
  if (limit_) limit_->charge(bytes_of(answer), host_.shard.now());
  for (auto& topic : answer.topics) {
    for (auto& fetched : topic.partitions) {
      auto follower = find(topic.topic, fetched.partition);
      if (!follower || !follower->named) continue;
      MR_CO_CHECK(co_await take_one(std::move(follower), std::move(fetched)));
    }
  }
  co_return {};
}

Task<> FollowerFetcher::take_one(FollowerRef follower, PartitionFetched fetched) {
  const bool had_records = !fetched.records.empty();
  const auto error = fetched.error;
  if (error != ErrorCode::none && error != ErrorCode::offset_out_of_range) {
    retry_later(follower, error, std::string(name_of(error)));
    co_return {};
  }
  auto step = co_await take_over(*follower, std::move(fetched));
  if (follower->removed) co_return {};
  if (!step) {
    const auto& why = step.error();
    if (why.code == Errc::cancelled) co_return why;
    retry_later(follower, trouble_of(why), why.detail);
    co_return {};
  }
  const auto trouble = std::exchange(follower->trouble, ErrorCode::none);
  if (trouble != ErrorCode::none && !passes_by_itself(trouble)) {
    host_.log.info("a partition is fetched again",
                   {{"partition", to_string(follower->partition->id())}, {"leader", leader_}});
  }
  follower->backoff = Backoff(backoff_first, host_.settings.backoff_max);
  const bool started = follower->partition->log_start() != follower->told_start;
  if (had_records || started || !same(*step, follower->told)) make_due(follower);
  co_return {};
}

Task<FollowerStep> FollowerFetcher::take_over(const Follower& follower, PartitionFetched fetched) {
  const auto partition = follower.partition;
  const auto epoch = follower.epoch;
  if (fetched.error == ErrorCode::none) {
    co_return co_await partition->take_over(epoch, std::move(fetched));
  }
  if (fetched.log_start == Offset{}) {
    co_return Error{Errc::out_of_range, "the leader does not say where its log begins"};
  }
  co_return co_await partition->begin_anew(epoch, fetched.log_start);
}

// One line for each kind of trouble, not for each try.
void FollowerFetcher::retry_later(const FollowerRef& follower, ErrorCode error,
                                  const std::string& why) {
  if (std::exchange(follower->trouble, error) != error) {
    const auto level = passes_by_itself(error) ? LogLevel::debug : LogLevel::warning;
    host_.log.write(
        level, "a partition cannot be fetched; it is tried again",
        {{"partition", to_string(follower->partition->id())}, {"leader", leader_}, {"error", why}});
  }
  if (std::exchange(follower->named, false)) {
    forget(follower->partition->id(), follower->partition->topic_id());
  }
  if (follower->retry != TimerId::none) return;
  const auto when = host_.shard.now() + follower->backoff.next();
  follower->retry = host_.shard.schedule(when, [this, kept = std::weak_ptr(follower)] {
    const auto due = kept.lock();
    if (!due || due->removed) return;
    due->retry = TimerId::none;
    --retrying_;
    make_due(due);
    changed_.notify_all();
  });
  ++retrying_;
}

void FollowerFetcher::tell(const Error& error) {
  auto trouble = std::string(name_of(error.code));
  if (trouble == trouble_) return;
  trouble_ = std::move(trouble);
  host_.log.warning("cannot fetch from a leader; it is tried again",
                    {{"leader", leader_}, {"error", to_string(error)}});
}

}  // namespace millrace::kernel
