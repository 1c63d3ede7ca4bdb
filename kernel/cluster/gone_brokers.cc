#include "kernel/cluster/gone_brokers.h"

#include <limits>
#include <string>
#include <utility>

#include "kernel/cluster/znodes.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel {

Task<> GoneBrokers::load(const Log& log) {
  const std::string key(znodes::gone_brokers);
  const auto node = co_await coordination_.get(key);
  if (!node && node.error().code == Errc::not_found) co_return {};
  if (!node) co_return node.error();
  const auto texts = znodes::decode_configs(key, node->value);
  if (!texts) {
    log.warning("it cannot be read since when brokers are gone; their time runs anew",
                {{"key", key}, {"error", to_string(texts.error())}});
    co_return {};
  }
  for (const auto& [broker, time] : *texts) {
    const auto id = integer_of(broker);
    const auto ms = integer_of(time);
    if (!id || *id < 0 || *id > std::numeric_limits<std::int32_t>::max() || !ms || *ms < 0)
      continue;
    stored_.insert_or_assign(static_cast<std::int32_t>(*id), Timestamp{*ms});
  }
  co_return {};
}

Task<> GoneBrokers::store(Since since) {
  if (since == stored_) co_return {};
  std::map<std::string, std::string> texts;
  for (const auto& [broker, time] : since) {
    texts.emplace(std::to_string(broker), std::to_string(time.ms));
  }
  std::vector<Write> writes;
  writes.push_back(
      {.key = std::string(znodes::gone_brokers), .value = znodes::encode_configs(texts)});
  MR_CO_CHECK(co_await coordination_.commit(std::move(writes)));
  stored_ = std::move(since);
  co_return {};
}

}  // namespace millrace::kernel
