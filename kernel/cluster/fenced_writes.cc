#include "kernel/cluster/fenced_writes.h"

#include <utility>

#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

Task<std::vector<Version>> FencedWrites::commit(std::vector<Write> writes) {
  MR_CO_TRY(const auto turn, co_await one_at_a_time_.lock());
  writes.push_back({.key = std::string(znodes::controller_epoch),
                    .value = std::to_string(epoch_),
                    .expected = version_});
  MR_CO_TRY(auto versions, co_await under_.commit(std::move(writes)));
  version_ = versions.back();
  versions.pop_back();
  co_return std::move(versions);
}

}  // namespace millrace::kernel
