#include "tests/unit/kernel/replication/replicas_fixture.h"

namespace millrace::kernel::three {

Task<std::unique_ptr<Peer>> FakeLink::connect(Address address) {
  for (const auto& [id, node] : nodes_) {
    if (node->up && address.host == "b" + std::to_string(id)) {
      co_return std::make_unique<FakePeer>(*node);
    }
  }
  co_return Error{Errc::closed, "nobody is at " + to_string(address)};
}

FakePeer::~FakePeer() {
  auto& home = end_->leader.partitions->shards()[0]->shard();
  home.post([end = std::move(end_)] { end->session.reset(); });
}

namespace {

Task<FetchAnswer> poll(std::shared_ptr<LeaderEnd> end, FetchRequest request) {
  auto& node = end->leader;
  auto& home = *node.partitions->shards()[0];
  ++node.fetches;
  if (!node.up) co_return Error{Errc::closed, "it is down"};
  FetchAnswer answer;
  if (request.session_epoch == 0) {
    end->session = std::make_shared<FetchSession>(*node.partitions, home, request);
    ++end->sessions;
    end->session->id = 7;
  } else if (!end->session || request.session_epoch != end->session->epoch) {
    answer.error = ErrorCode::fetch_session_id_not_found;
    co_return std::move(answer);
  } else {
    end->session->change(request);
  }
  const auto session = end->session;
  session->epoch = request.session_epoch + 1;
  const ReadContext context{.bytes_max = static_cast<std::uint64_t>(request.bytes_max),
                            .at_least_one = true,
                            .replica = request.replica_id,
                            .replica_epoch = request.replica_epoch};
  const auto deadline = home.shard().now() + request.wait_max;
  std::vector<FetchGroup::Found> news;
  while (true) {
    const auto waiter = std::make_shared<FetchWaiter>(home.shard());
    MR_CO_TRY(auto found, co_await session->read(context, waiter));
    bool enough = false;
    for (auto& one : found) {
      if (!one.news) continue;
      enough |= one.fetched.error != ErrorCode::none || !one.fetched.records.empty() ||
                one.fetched.diverging_end != Offset{};
      std::erase_if(news, [&one](const auto& other) { return other.slot == one.slot; });
      news.push_back(std::move(one));
    }
    const auto left = deadline - home.shard().now();
    if (enough || left <= Duration::zero()) break;
    static_cast<void>(co_await with_deadline(waiter->wait(), left));
    if (!node.up) co_return Error{Errc::closed, "it has gone down"};
  }
  answer.session_id = session->id;
  answer.topics = session->answer(std::move(news));
  for (auto& topic : answer.topics) topic.topic.name.clear();  // as the real one answers
  co_return std::move(answer);
}

}  // namespace

Task<FetchAnswer> FakePeer::fetch(FetchRequest request) {
  auto make = [end = end_, request = std::move(request)]() mutable {
    return poll(std::move(end), std::move(request));
  };
  co_return co_await run_on(end_->leader.partitions->shards()[0]->shard(), std::move(make));
}

}  // namespace millrace::kernel::three
