#include "kernel/cluster/fenced_writes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

namespace {

// So many groups that fail one after the other: it is not about one of them.
constexpr int failures_in_turn_max = 8;

std::size_t bytes_of(const std::vector<Write>& writes) {
  std::size_t bytes = 0;
  for (const auto& write : writes) bytes += commit_bytes_of(write);
  return bytes;
}

}  // namespace

bool ends_term(const Error& error) noexcept {
  return error.code == Errc::fenced || error.code == Errc::conflict ||
         error.code == Errc::cancelled || error.code == Errc::closed;
}

Task<std::vector<Version>> FencedWrites::commit(std::vector<Write> writes) {
  MR_CO_TRY(const auto turn, co_await one_at_a_time_.lock());
  writes.push_back({.key = std::string(znodes::controller_epoch),
                    .value = std::to_string(epoch_),
                    .expected = version_});
  if (stopped_) co_return Error{Errc::closed, "this controller is none any more"};
  CancelScope scope(co_await this_scope());
  running_ = &scope;
  auto committing = under_.commit(std::move(writes)).within(scope);
  auto done = co_await std::move(committing);
  running_ = nullptr;
  if (!done) co_return done.error();
  auto versions = *std::move(done);
  version_ = versions.back();
  versions.pop_back();
  co_return std::move(versions);
}

Task<FencedWrites::GroupsDone> FencedWrites::commit_groups(Groups groups) {
  GroupsDone done;
  done.reserve(groups.size());
  for (std::size_t first = 0; first < groups.size();) {
    auto end = first;
    std::size_t bytes = 0;
    std::vector<Write> all;
    do {
      bytes += bytes_of(groups[end]);
      std::ranges::copy(groups[end], std::back_inserter(all));
      ++end;
    } while (end < groups.size() && bytes + bytes_of(groups[end]) <= part_bytes_max);
    auto together = co_await commit(std::move(all));
    if (together) {
      auto next = together->begin();
      for (auto at = first; at < end; ++at) {
        const auto count = static_cast<std::ptrdiff_t>(groups[at].size());
        done.emplace_back(std::vector<Version>(next, next + count));
        next += count;
      }
    } else if (ends_term(together.error())) {
      co_return together.error();
    } else if (end - first == 1) {
      done.emplace_back(together.error());
    } else {
      Groups apart(std::make_move_iterator(groups.begin() + static_cast<std::ptrdiff_t>(first)),
                   std::make_move_iterator(groups.begin() + static_cast<std::ptrdiff_t>(end)));
      MR_CO_TRY(auto some, co_await commit_one_by_one(std::move(apart)));
      std::ranges::move(some, std::back_inserter(done));
    }
    first = end;
  }
  co_return std::move(done);
}

Task<FencedWrites::GroupsDone> FencedWrites::commit_one_by_one(Groups groups) {
  GroupsDone done;
  int failures_in_turn = 0;
  for (auto& group : groups) {
    if (failures_in_turn == failures_in_turn_max) {
      done.push_back(done.back());
      continue;
    }
    done.push_back(co_await commit(std::move(group)));
    if (done.back()) {
      failures_in_turn = 0;
    } else if (ends_term(done.back().error())) {
      co_return done.back().error();
    } else {
      ++failures_in_turn;
    }
  }
  co_return std::move(done);
}

Task<> FencedWrites::give_up(Duration limit) {
  std::vector<Write> writes;
  writes.push_back({.key = std::string(znodes::controller), .value = {}});
  writes.push_back({.key = std::string(znodes::controller_epoch),
                    .value = std::to_string(epoch_),
                    .expected = version_});
  auto committing = with_deadline(under_.commit(std::move(writes)), limit);
  MR_CO_CHECK(co_await std::move(committing));
  co_return {};
}

}  // namespace millrace::kernel
