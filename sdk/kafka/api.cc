#include <millrace/kafka/api.h>

#include <algorithm>

namespace millrace::kafka {

std::int16_t ApiInfo::request_header_version(std::int16_t version) const noexcept {
  // The oldest ControlledShutdown carries no client id.
  if (key == ApiKey::controlled_shutdown && version == 0) return 0;
  return version >= flexible_from ? 2 : 1;
}

std::int16_t ApiInfo::response_header_version(std::int16_t version) const noexcept {
  // A client reads this answer before it knows what the broker can do (KIP-511).
  if (key == ApiKey::api_versions) return 0;
  return version >= flexible_from ? 1 : 0;
}

const ApiInfo* find_api(std::int16_t key) noexcept {
  const auto apis = api_table();
  // Keys have no gaps, as far as they go.
  if (key >= 0 && static_cast<std::size_t>(key) < apis.size()) {
    const auto& api = apis[static_cast<std::size_t>(key)];
    if (static_cast<std::int16_t>(api.key) == key) return &api;
  }
  const auto at = std::ranges::lower_bound(
      apis, key, {}, [](const ApiInfo& api) { return static_cast<std::int16_t>(api.key); });
  return at != apis.end() && static_cast<std::int16_t>(at->key) == key ? &*at : nullptr;
}

const ApiInfo& info_of(ApiKey key) noexcept {
  const auto* api = find_api(static_cast<std::int16_t>(key));
  MR_ASSERT(api);
  return *api;
}

}  // namespace millrace::kafka
