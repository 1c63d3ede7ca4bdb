#include "kernel/config/text.h"

#include <algorithm>
#include <charconv>

namespace millrace::kernel {

std::string number_text(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(std::begin(text), std::end(text), number);
  return {text, end};
}

namespace {
/// From this many letters on, the front of a name stands for the name: "warn" for "warning".
constexpr std::size_t shortened_min = 3;
}  // namespace

// Optimal string alignment: three rows of the usual table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates) {
  const std::size_t slips_max = std::max<std::size_t>(2, name.size() / 3);
  std::optional<std::string> best;
  std::size_t best_distance = slips_max + 1;
  for (const auto& candidate : candidates) {
    const bool shortened = name.size() >= shortened_min && candidate.starts_with(name);
    // As many letters at least must be inserted or removed; of what is very long, too many.
    const auto apart =
        std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
    if (!shortened && apart >= best_distance) continue;
    const auto distance = shortened ? 1 : edit_distance(name, candidate);
    if (distance < best_distance && distance < std::max(name.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string nearest_hint(std::string_view name, const std::vector<std::string>& candidates) {
  const auto found = nearest(name, candidates);
  return found ? "; nearest known: " + *found : "";
}

std::string joined(const std::vector<std::string>& names, std::string_view separator) {
  std::string result;
  for (const auto& name : names) {
    if (!result.empty()) result += separator;
    result += name;
  }
  return result;
}

}  // namespace millrace::kernel
