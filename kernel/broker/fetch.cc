// Fetch: a long poll on the shard that keeps its session, else on the connection's. It reads what
// there is; while that is not enough it waits until one of its partitions has grown.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "kernel/broker/broker.h"
#include "kernel/broker/fetch_session.h"
#include "kernel/broker/session.h"
#include "kernel/broker/tell.h"

namespace millrace::kernel {

namespace {

using Found = FetchGroup::Found;
using SessionRef = std::shared_ptr<FetchSession>;

constexpr std::int32_t no_session = -1;
constexpr std::int32_t new_session = 0;
constexpr std::int32_t session_over = -1;  // what no request has while it runs

bool is_full(const FetchRequest& request) {
  return request.session_epoch == no_session || request.session_epoch == new_session;
}

// After the last comes 1: 0 asks for a new session.
std::int32_t epoch_after(std::int32_t epoch) {
  return epoch == std::numeric_limits<std::int32_t>::max() ? 1 : epoch + 1;
}

// Every shard read up to the request's limit: keep what fits. What is dropped are file ranges; they
// cost nothing.
void keep_within(std::vector<Found>& found, std::uint64_t bytes_max) {
  std::uint64_t kept = 0;
  for (auto& one : found) {
    const auto bytes = one.fetched.records.size();
    if (bytes == 0) continue;
    if (kept > 0 && kept + bytes > bytes_max) {
      one.fetched.records = Payload();
      continue;
    }
    kept += bytes;
  }
}

// What was read again takes the place of what was read before.
void merge(std::vector<Found>& all, std::vector<Found> more) {
  if (all.empty()) {
    all = std::move(more);
    return;
  }
  std::unordered_map<FetchGroup::Slot, Found*> known;
  for (auto& one : all) known.emplace(one.slot, &one);
  std::vector<Found> added;
  for (auto& one : more) {
    const auto before = known.find(one.slot);
    if (before == known.end()) {
      added.push_back(std::move(one));
      continue;
    }
    one.news |= before->second->news;
    *before->second = std::move(one);
  }
  std::ranges::move(added, std::back_inserter(all));
}

bool is_enough(const std::vector<Found>& found, std::uint64_t bytes_min) {
  std::uint64_t bytes = 0;
  for (const auto& one : found) {
    if (one.fetched.error != ErrorCode::none) return true;
    if (one.fetched.diverging_end != Offset{}) return true;
    bytes += one.fetched.records.size();
  }
  return bytes >= bytes_min;
}

// Reads until there is enough, the time is up, or another request has taken the session over.
Task<std::vector<Found>> poll(SessionRef session, FetchRequest request) {
  auto& shard = session->home().shard();
  const auto epoch = session->epoch;
  const auto deadline = shard.now() + request.wait_max;
  const auto bytes_min = static_cast<std::uint64_t>(std::max(request.bytes_min, 0));
  const ReadContext context{.isolation = request.isolation,
                            .newest_magic = request.newest_magic,
                            .zstd = request.zstd,
                            .bytes_max = static_cast<std::uint64_t>(std::max(request.bytes_max, 0)),
                            .at_least_one = true,
                            .replica = request.replica_id,
                            .replica_epoch = request.replica_epoch};
  std::vector<Found> found;
  while (true) {
    const auto waiter = std::make_shared<FetchWaiter>(shard);
    session->waiter = waiter;
    MR_CO_TRY(auto read, co_await session->read(context, waiter));
    merge(found, std::move(read));
    const auto left = deadline - shard.now();
    if (session->epoch != epoch || session->size() == 0 || left <= Duration::zero() ||
        is_enough(found, bytes_min)) {
      co_return std::move(found);
    }
    const auto grown = co_await with_deadline(waiter->wait(), left);
    if (!grown && grown.error().code != Errc::timed_out) co_return grown.error();
  }
}

// A request that names all its partitions; may open a session.
Task<FetchAnswer> fetch_all(PartitionMap& partitions, ShardState& home, FetchSessionCache& cache,
                            FetchRequest request) {
  if (request.session_id != 0) {
    // Its last request may still wait, and the answer to this one behind it.
    if (const auto before = cache.find(request.session_id)) {
      before->epoch = session_over;
      if (before->waiter) before->waiter->notify();
    }
    cache.remove(request.session_id);
  }
  auto session = std::make_shared<FetchSession>(partitions, home, request);
  const auto bytes_max = static_cast<std::uint64_t>(std::max(request.bytes_max, 0));
  const bool opens = request.session_epoch == new_session;
  MR_CO_TRY(auto found, co_await poll(session, std::move(request)));
  std::ranges::sort(found, {}, &Found::slot);
  keep_within(found, bytes_max);
  FetchAnswer answer{.topics = session->answer(std::move(found))};
  if (opens) {
    session->epoch = 1;
    if (cache.add(session, home.shard().now())) answer.session_id = session->id;
  }
  co_return std::move(answer);
}

// The session that a request continues, or why it cannot.
SessionRef continued(const FetchSessionCache& cache, const FetchRequest& request,
                     ErrorCode& error) {
  auto session = cache.find(request.session_id);
  if (!session) {
    error = ErrorCode::fetch_session_id_not_found;
  } else if (session->by_topic_id() != request.by_topic_id) {
    error = ErrorCode::fetch_session_topic_id_error;
  } else if (session->epoch != request.session_epoch) {
    error = ErrorCode::invalid_fetch_session_epoch;
  }
  return session;
}

// A request that names what has changed, answered with news.
Task<FetchAnswer> fetch_news(FetchSessionCache& cache, FetchRequest request) {
  FetchAnswer answer;
  const auto session = continued(cache, request, answer.error);
  if (answer.error != ErrorCode::none) co_return std::move(answer);
  session->change(request);
  if (session->size() == 0) {
    cache.remove(session->id);
    co_return std::move(answer);
  }
  const auto epoch = session->epoch = epoch_after(request.session_epoch);
  session->last_used = session->home().shard().now();
  if (const auto before = session->waiter) before->notify();
  const auto bytes_max = static_cast<std::uint64_t>(std::max(request.bytes_max, 0));
  auto found = co_await poll(session, std::move(request));
  if (!found) {
    cache.remove(session->id);  // what was read for this answer will not be found again
    co_return found.error();
  }
  if (session->epoch != epoch) {
    answer.error = ErrorCode::invalid_fetch_session_epoch;
    co_return std::move(answer);
  }
  keep_within(*found, bytes_max);
  std::erase_if(*found, [](const Found& one) { return !one.news; });
  answer.session_id = session->id;
  answer.topics = session->answer(*std::move(found));
  co_return std::move(answer);
}

Task<FetchAnswer> serve(PartitionMap& partitions, ShardState& home, FetchSessionCache& cache,
                        FetchRequest request) {
  MR_CO_TRY(const auto pass, home.running().enter());
  auto fetching = is_full(request) ? fetch_all(partitions, home, cache, std::move(request))
                                   : fetch_news(cache, std::move(request));
  co_return co_await std::move(fetching);
}

// What stops a request under way.  [the shard that it runs on]
struct Stop {
  std::optional<CancelScope> scope;

  void cancel() {
    if (scope) scope->cancel();
  }
};

// Runs the request so that it ends with whoever waits for its answer, and before the broker closes.
Task<> run(PartitionMap& partitions, ShardState& home, FetchSessionCache& cache,
           FetchRequest request, std::shared_ptr<Stop> stop, Shard& asker,
           Resolver<FetchAnswer> done) {
  stop->scope.emplace(&home.background());
  auto serving = serve(partitions, home, cache, std::move(request)).within(*stop->scope);
  auto answer = co_await std::move(serving);
  stop->scope.reset();
  tell(home.shard(), asker, [done = std::move(done), answer = std::move(answer)]() mutable {
    done.resolve(std::move(answer));
  });
  co_return {};
}

}  // namespace

Call<FetchAnswer> KernelBroker::fetch(Session& session, FetchRequest request) {
  const auto& local = kernel_session(session).shard();
  Shard& asker = kernel_session(session).shard().shard();
  const auto shards = partitions_.shards().size();
  const auto at = request.session_id > 0 ? FetchSessionCache::shard_of(request.session_id, shards)
                                         : asker.index();
  auto& home = *partitions_.shards()[at];
  const auto bytes_max = config_.number_of(local.cluster().get(), "fetch.max.bytes", 57'671'680);
  request.bytes_max =
      static_cast<std::int32_t>(std::min<std::int64_t>(request.bytes_max, bytes_max));
  auto [resolver, answer] = make_pending<FetchAnswer>();
  auto stop = std::make_shared<Stop>();
  resolver.on_abandoned(
      [stop, &asker, &home] { tell(asker, home.shard(), [stop] { stop->cancel(); }); });
  tell(asker, home.shard(),
       [this, &home, &asker, at, stop, request = std::move(request),
        done = std::move(resolver)]() mutable {
         spawn(home.shard(),
               run(partitions_, home, fetch_sessions_[at], std::move(request), std::move(stop),
                   asker, std::move(done)),
               "fetch");
       });
  return {Pending<>::ready({}), std::move(answer)};
}

}  // namespace millrace::kernel
