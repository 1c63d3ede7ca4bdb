#include "sim_history.h"

namespace millrace::testing {

namespace {

std::string at(std::int64_t offset) { return " at " + std::to_string(offset); }

}  // namespace

std::vector<std::string> violations(const SimHistory& history) {
  auto found = history.errors;
  std::map<std::string, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < history.sent.size(); ++rank) {
    rank_of.emplace(history.sent[rank], rank);
  }
  std::map<std::int64_t, std::string> log;
  std::map<std::string, std::int64_t> place_of;
  std::size_t due = 0;
  for (const auto& [offset, value] : history.log) {
    log.emplace(offset, value);
    if (!place_of.emplace(value, offset).second) found.push_back(value + " is there twice");
    const auto rank = rank_of.find(value);
    if (rank == rank_of.end()) {
      found.push_back(value + " is there and was never sent");
      continue;
    }
    if (rank->second < due) found.push_back(value + at(offset) + " stands behind a later one");
    due = rank->second;
  }
  for (const auto& [value, offset] : history.acknowledged) {
    const auto place = place_of.find(value);
    if (place == place_of.end()) {
      found.push_back(value + " was acknowledged" + at(offset) + " and is lost");
    } else if (place->second != offset) {
      found.push_back(value + " was acknowledged" + at(offset) + " and is" + at(place->second));
    }
  }
  std::int64_t before = -1;
  for (const auto& [offset, value] : history.shown) {
    if (offset <= before) found.push_back("the reader went back to" + at(offset));
    before = offset;
    const auto kept = log.find(offset);
    if (kept == log.end() || kept->second != value) {
      found.push_back(value + " was shown" + at(offset) + " and is not there");
    }
  }
  return found;
}

}  // namespace millrace::testing
