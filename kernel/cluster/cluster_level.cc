#include "kernel/cluster/cluster_level.h"

#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "kernel/cluster/format_version.h"

namespace millrace::kernel {

namespace json = boost::json;

std::string encode_level(std::int64_t level) {
  return json::serialize(json::object{{"version", 1}, {"level", level}});
}

Result<std::int64_t> decode_level(std::string_view text) {
  boost::system::error_code error;
  const auto value = json::parse(text, error);
  const auto* object = error ? nullptr : value.if_object();
  if (object) MR_CHECK(check_format(level_key, *object, 1));
  const auto* level = object ? object->if_contains("level") : nullptr;
  if (level && level->is_int64()) return level->get_int64();
  return Error{Errc::corrupt,
               std::string(level_key) + ": not the JSON expected there: " + std::string(text)};
}

Task<> check_level(Coordination& coordination) {
  const std::string key(level_key);
  auto node = co_await coordination.get(key);
  if (!node && node.error().code == Errc::not_found) {
    std::vector<Write> writes;
    writes.push_back(
        {.key = key, .value = encode_level(level_known_min), .expected = must_not_exist});
    auto written = co_await coordination.commit(std::move(writes));
    if (!written && written.error().code != Errc::conflict) co_return written.error();
    node = co_await coordination.get(key);
  }
  if (!node) co_return node.error();
  MR_CO_TRY(const auto level, decode_level(node->value));
  if (level >= level_known_min && level <= level_known_max) co_return {};
  co_return Error{Errc::incompatible,
                  key + ": the cluster is at level " + std::to_string(level) +
                      ", and this broker knows levels " + std::to_string(level_known_min) + " to " +
                      std::to_string(level_known_max) +
                      "; start a version of Millrace that knows it, as those that have used this "
                      "cluster last do"};
}

}  // namespace millrace::kernel
