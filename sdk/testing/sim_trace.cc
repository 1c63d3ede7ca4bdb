#include <millrace/testing/sim_trace.h>

#include <algorithm>

namespace millrace::testing {

namespace {
constexpr std::size_t lines_max = 500'000;
constexpr std::uint64_t fnv_prime = 1099511628211U;
}  // namespace

void SimTrace::add(std::string line) {
  for (const char c : line) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * fnv_prime;
  hash_ = (hash_ ^ '\n') * fnv_prime;
  ++events_;
  if (lines_.size() < lines_max) lines_.push_back(std::move(line));
}

std::string first_difference(const SimTrace& here, const SimTrace& there) {
  if (here.hash() == there.hash() && here.events() == there.events()) return {};
  const auto [ours, theirs] = std::ranges::mismatch(here.lines(), there.lines());
  const auto at = ours - here.lines().begin();
  const auto shown = [](auto line, auto end) {
    return line == end ? std::string("nothing more is kept") : "'" + *line + "'";
  };
  return "line " + std::to_string(at + 1) + ": " + shown(ours, here.lines().end()) + " here, " +
         shown(theirs, there.lines().end()) + " there";
}

}  // namespace millrace::testing
