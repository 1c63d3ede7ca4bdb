#include "kernel/broker/producer_ids.h"

#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

namespace {
constexpr std::int64_t block_ids = 1000;
}

Task<std::int64_t> ProducerIds::next() {
  while (next_ > last_) MR_CO_CHECK(co_await take_block());
  co_return next_++;
}

Task<> ProducerIds::take_block() {
  const std::string key(znodes::producer_id_block);
  znodes::ProducerIdBlock block{.broker = broker_id_, .first = 0, .last = block_ids - 1};
  Version expected = must_not_exist;
  auto current = co_await coordination_.get(key);
  if (current) {
    MR_CO_TRY(const auto taken, znodes::decode_producer_ids(current->value));
    block.first = taken.last + 1;
    block.last = taken.last + block_ids;
    expected = current->version;
  } else if (current.error().code != Errc::not_found) {
    co_return current.error();
  }
  std::vector<Write> writes;
  writes.push_back({.key = key, .value = znodes::encode_producer_ids(block), .expected = expected});
  auto written = co_await coordination_.commit(std::move(writes));
  if (!written) {
    // Somebody else took a block between the two calls: look again.
    if (written.error().code == Errc::conflict) co_return {};
    co_return written.error();
  }
  // A block that was taken meanwhile by another call of ours is left unused.
  next_ = block.first;
  last_ = block.last;
  co_return {};
}

}  // namespace millrace::kernel
