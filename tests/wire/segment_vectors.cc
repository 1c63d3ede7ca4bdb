// segment-vectors DIR...: reads partition folders that Kafka brokers left, and holds what is found
// against what Kafka's own reader found (tests/golden/README.md, segments/). A DIR is a partition's
// folder, or holds such folders at any depth: RELEASE/TOPIC/.
//
// Each is a vector of its own: a log (.log, .log.gz, .checkpoint) with its .records.jsonl, the same
// log with its .decoded.jsonl, and the folder as the storage plugin opens it.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include "decoded_records.h"
#include "golden_file.h"
#include "json_difference.h"
#include "log_entries.h"
#include "shipped_codecs.h"
#include "stored_folder.h"

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace millrace;
using namespace millrace::wire;

struct Counts {
  int passed = 0;
  int failed = 0;

  void add(const std::string& name, const Result<>& result) {
    ++(result ? passed : failed);
    if (!result) std::printf("%s: %s\n", name.c_str(), result.error().detail.c_str());
  }
};

/// Without ".log", ".log.gz" or, for a snapshot of metadata, nothing:
/// `00….checkpoint.records.jsonl`.
std::string stem_of(const fs::path& log) {
  auto text = log.string();
  for (const std::string_view suffix : {".log.gz", ".log"}) {
    if (text.ends_with(suffix)) return text.substr(0, text.size() - suffix.size());
  }
  return text;
}

bool is_log(const fs::path& file) {
  const auto name = file.filename().string();
  return name.ends_with(".log") || name.ends_with(".log.gz") || name.ends_with(".checkpoint");
}

Result<json::array> read_lines(const std::string& path) {
  json::array lines;
  MR_CHECK(
      for_each_line(path, [&lines](std::string_view line) { lines.push_back(json::parse(line)); }));
  return lines;
}

Result<> compare(const json::array& ours, const std::string& expected_path) {
  MR_TRY(const auto expected, read_lines(expected_path));
  for (std::size_t at = 0; at < std::min(ours.size(), expected.size()); ++at) {
    if (const auto where = difference(ours[at], expected[at]); !where.empty()) {
      return Error{Errc::corrupt, "line " + std::to_string(at + 1) + ": " + where};
    }
  }
  if (ours.size() != expected.size()) {
    return Error{Errc::corrupt,
                 std::to_string(ours.size()) + " lines, not " + std::to_string(expected.size())};
  }
  return {};
}

void add_batches(const json::array& lines, std::uint64_t log_at,
                 std::vector<StoredBatch>& batches) {
  for (const auto& line : lines) {
    if (line.at("t").as_string() != "batch") continue;
    batches.push_back({{line.at("baseOffset").as_int64()},
                       {line.at("lastOffset").as_int64()},
                       log_at + line.at("position").to_number<std::uint64_t>(),
                       line.at("size").to_number<std::uint64_t>(),
                       line.at("magic").to_number<std::int8_t>()});
  }
}

/// Reads one log and checks what stands beside it; its entries.
json::array check_log(const fs::path& log, Counts& counts) {
  const auto content = read_file(log);
  const auto entries =
      content ? describe_entries(*content, shipped_codecs()) : Result<json::array>(content.error());
  if (!entries) {
    counts.add(log, entries.error());
    return {};
  }
  const auto records = stem_of(log) + ".records.jsonl";
  counts.add(log, fs::exists(records) ? compare(*entries, records) : Result<>());
  if (const auto decoded = stem_of(log) + ".decoded.jsonl"; fs::exists(decoded)) {
    const auto ours = decode_records(log.parent_path().filename().string(), *entries);
    counts.add(decoded, ours ? compare(*ours, decoded) : Result<>(ours.error()));
  }
  return *entries;
}

void check_folder(const fs::path& folder, Counts& counts) {
  std::set<fs::path> logs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_log(entry.path())) logs.insert(entry.path());
  }
  std::vector<StoredBatch> batches;
  std::uint64_t log_at = 0;
  bool stored = false;
  for (const auto& log : logs) {
    const auto entries = check_log(log, counts);
    if (log.extension() != ".log") continue;
    add_batches(entries, log_at, batches);
    log_at += fs::file_size(log);
    stored = true;
  }
  if (stored) counts.add(folder, check_stored_folder(folder, batches));
}

std::set<fs::path> folders_in(const fs::path& root) {
  std::set<fs::path> folders;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (is_log(entry.path())) folders.insert(entry.path().parent_path());
  }
  return folders;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: segment-vectors DIR...\n");
    return 64;
  }
  Counts counts;
  for (int at = 1; at < argc; ++at) {
    try {
      const auto folders = folders_in(argv[at]);
      if (folders.empty()) counts.add(argv[at], Error{Errc::not_found, "no partition's folder"});
      for (const auto& folder : folders) check_folder(folder, counts);
    } catch (const std::exception& error) {
      counts.add(argv[at], Error{Errc::corrupt, error.what()});
    }
  }
  std::printf("%d passed, %d failed\n", counts.passed, counts.failed);
  return counts.failed == 0 ? 0 : 1;
}
