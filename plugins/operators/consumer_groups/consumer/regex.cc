#include "regex.h"

#include <re2/re2.h>

namespace millrace::consumer_groups {
namespace {

constexpr std::int64_t regex_bytes_max = std::int64_t{1} << 20;

re2::RE2::Options options() {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(regex_bytes_max);
  return options;
}

Result<> usable(const re2::RE2& compiled) {
  if (!compiled.ok()) return Error{Errc::invalid_argument, compiled.error()};
  return {};
}

}  // namespace

Result<> check_regex(const std::string& regex) { return usable(re2::RE2(regex, options())); }

Result<std::vector<std::string>> matching_topics(const std::string& regex,
                                                 const ClusterView& cluster) {
  const re2::RE2 compiled(regex, options());
  MR_CHECK(usable(compiled));
  std::vector<std::string> topics;
  for (const auto name : cluster.names()) {
    if (re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), compiled)) {
      topics.emplace_back(name);
    }
  }
  return topics;
}

}  // namespace millrace::consumer_groups
