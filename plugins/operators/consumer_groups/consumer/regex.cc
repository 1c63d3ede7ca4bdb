#include "regex.h"

#include <re2/re2.h>
#include <re2/set.h>

namespace millrace::consumer_groups {
namespace {

constexpr std::int64_t memory_bytes_max = std::int64_t{1} << 20;
// Each byte of a name costs at most about so many steps.
constexpr int instructions_max = 2000;

re2::RE2::Options options() {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(memory_bytes_max);
  return options;
}

Error too_costly(const std::string& why) {
  return {Errc::invalid_argument,
          "the expression is too costly: " + why + "; use a simpler one, or topics' names"};
}

// A set of one expression: unlike a plain RE2 it never falls back from its automaton to one that
// takes as many steps for each byte as the expression has parts.
Result<re2::RE2::Set> compiled(const std::string& regex) {
  const re2::RE2 plain(regex, options());
  if (!plain.ok()) return Error{Errc::invalid_argument, plain.error()};
  if (plain.ProgramSize() > instructions_max) {
    return too_costly(std::to_string(plain.ProgramSize()) + " instructions, at most " +
                      std::to_string(instructions_max) + " are allowed");
  }
  re2::RE2::Set set(options(), re2::RE2::ANCHOR_BOTH);
  std::string why;
  if (set.Add(regex, &why) < 0) return Error{Errc::invalid_argument, std::move(why)};
  if (!set.Compile()) return too_costly("it takes too much memory");
  return set;
}

}  // namespace

Result<> check_regex(const std::string& regex) {
  MR_CHECK(compiled(regex));
  return {};
}

Result<std::vector<std::string>> matching_topics(const std::string& regex,
                                                 const ClusterView& cluster) {
  MR_TRY(const auto set, compiled(regex));
  std::vector<std::string> topics;
  std::vector<int> matched;
  for (const auto name : cluster.names()) {
    re2::RE2::Set::ErrorInfo failure{};
    if (set.Match(re2::StringPiece(name.data(), name.size()), &matched, &failure)) {
      topics.emplace_back(name);
    } else if (failure.kind == re2::RE2::Set::kOutOfMemory) {
      return too_costly("matching it takes too much memory");
    }
  }
  return topics;
}

}  // namespace millrace::consumer_groups
