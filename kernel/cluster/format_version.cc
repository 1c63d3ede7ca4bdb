#include "kernel/cluster/format_version.h"

#include <charconv>
#include <optional>
#include <string>

#include <boost/json.hpp>

namespace millrace::kernel {

namespace {

// Kafka writes the number of a few as a text.
std::optional<std::int64_t> version_of(const boost::json::object& stored) {
  const auto* version = stored.if_contains("version");
  if (!version) return std::nullopt;
  if (version->is_int64()) return version->get_int64();
  if (!version->is_string()) return std::nullopt;
  const std::string_view text(version->get_string());
  std::int64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || at != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<> check_format(std::string_view what, const boost::json::object& stored,
                      std::int64_t known) {
  const auto found = version_of(stored);
  if (!found || *found <= known) return {};
  return Error{Errc::incompatible, std::string(what) + " is of format version " +
                                       std::to_string(*found) + ", and this broker knows up to " +
                                       std::to_string(known) +
                                       "; start the version of Millrace that has written it"};
}

}  // namespace millrace::kernel
