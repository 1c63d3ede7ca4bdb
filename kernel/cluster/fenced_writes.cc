#include "kernel/cluster/fenced_writes.h"

#include <utility>

#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

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
