#include "json_difference.h"

namespace millrace::wire {

namespace json = boost::json;

namespace {

bool is_integer(const json::value& value) { return value.is_int64() || value.is_uint64(); }

}  // namespace

std::string difference(const json::value& ours, const json::value& kafkas) {
  if (ours.is_object() && kafkas.is_object()) {
    for (const auto& [name, value] : kafkas.as_object()) {
      const auto* mine = ours.as_object().if_contains(name);
      if (!mine) return std::string(name) + " (missing)";
      if (auto where = difference(*mine, value); !where.empty()) {
        return std::string(name) + (where[0] == '[' || where[0] == ' ' ? "" : ".") + where;
      }
    }
    for (const auto& [name, value] : ours.as_object()) {
      if (!kafkas.as_object().contains(name)) return std::string(name) + " (not Kafka's)";
    }
    return "";
  }
  if (ours.is_array() && kafkas.is_array()) {
    const auto& mine = ours.as_array();
    const auto& theirs = kafkas.as_array();
    if (mine.size() != theirs.size()) return " (sizes)";
    for (std::size_t at = 0; at < mine.size(); ++at) {
      if (auto where = difference(mine[at], theirs[at]); !where.empty()) {
        return "[" + std::to_string(at) + "]." + where;
      }
    }
    return "";
  }
  // Kafka writes 1.0E10 where we write 1e+10, and 3.0 where we write 3.
  if (ours.is_number() && kafkas.is_number() && !(is_integer(ours) && is_integer(kafkas))) {
    return ours.to_number<double>() == kafkas.to_number<double>() ? "" : " (float)";
  }
  return ours == kafkas ? ""
                        : " (" + json::serialize(ours) + ", not " + json::serialize(kafkas) + ")";
}

}  // namespace millrace::wire
