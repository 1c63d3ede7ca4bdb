// Partition folders that real brokers of five releases left behind open and read as they stand,
// with their own indexes and with ours.
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "filelog_subject.h"

namespace millrace::filelog {
namespace {

namespace fs = std::filesystem;

/// A line of what Kafka's own reader found.
struct GoldenBatch {
  Offset base;
  Offset last;
  Timestamp max_timestamp;
  std::string bytes;
};

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::int64_t field(const std::string& line, const std::string& name) {
  const auto key = "\"" + name + "\":";
  const auto at = line.find(key);
  if (at == std::string::npos) {
    ADD_FAILURE() << "no field " << name << " in " << line;
    return 0;
  }
  std::int64_t value = 0;
  std::from_chars(line.data() + at + key.size(), line.data() + line.size(), value);
  return value;
}

std::vector<fs::path> files_of(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with(suffix)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

std::vector<GoldenBatch> batches_of(const fs::path& folder) {
  std::vector<GoldenBatch> batches;
  for (const auto& log : files_of(folder, ".log")) {
    const auto bytes = content_of(log);
    std::ifstream lines(fs::path(log).replace_extension(".records.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(R"({"t":"batch")")) continue;
      const auto position = static_cast<std::size_t>(field(line, "position"));
      const auto size = static_cast<std::size_t>(field(line, "size"));
      batches.push_back({{field(line, "baseOffset")},
                         {field(line, "lastOffset")},
                         {field(line, "maxTimestamp")},
                         bytes.substr(position, size)});
    }
  }
  return batches;
}

enum class Indexes { theirs, none, garbage };

struct GoldenCase {
  std::string folder;  // "kafka-2.8.2/v2-gzip-java28"
  bool clean;
  Indexes indexes;
};
void PrintTo(const GoldenCase& one, std::ostream* out) { *out << one.folder; }

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  const fs::path root(MILLRACE_GOLDEN_DIR "/segments");
  for (const auto& release : fs::directory_iterator(root)) {
    if (!release.is_directory()) continue;
    for (const auto& topic : fs::directory_iterator(release.path())) {
      if (files_of(topic.path(), ".log").empty()) continue;
      const auto folder = fs::relative(topic.path(), root).string();
      cases.push_back({folder, true, Indexes::theirs});
      cases.push_back({folder, false, Indexes::theirs});
      cases.push_back({folder, true, Indexes::none});
      cases.push_back({folder, true, Indexes::garbage});
    }
  }
  return cases;
}

class GoldenSegmentsTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  fs::path folder() const { return fs::path(MILLRACE_GOLDEN_DIR "/segments") / GetParam().folder; }

  void copy_to_disk() {
    for (const auto& entry : fs::directory_iterator(folder())) {
      const auto name = entry.path().filename().string();
      if (name.ends_with(".jsonl")) continue;
      auto content = content_of(entry.path());
      if (name.ends_with("index") && !name.ends_with(".txnindex")) {
        if (GetParam().indexes == Indexes::none) continue;
        if (GetParam().indexes == Indexes::garbage)
          content = "no rows at all, but 36 bytes, as it is";
      }
      subject_.write(std::string(orders_folder) + "/" + name, content);
    }
    if (GetParam().clean) subject_.write("/data/.kafka_cleanshutdown", "");
  }
  std::string read(PartitionLog& log, ReadRequest request) {
    return testing::read_text(subject_, log, request);
  }

  FilelogSubject subject_;
};

TEST_P(GoldenSegmentsTest, OpenAndRead) {
  const auto batches = batches_of(folder());
  ASSERT_FALSE(batches.empty());
  copy_to_disk();
  subject_.lock();
  auto opened = subject_.open();
  ASSERT_TRUE(opened) << to_string(opened.error());
  auto& log = *opened->log;
  EXPECT_EQ(opened->bytes_cut, 0u) << opened->cut_reason;
  EXPECT_EQ(log.bounds().end, batches.back().last + 1);

  std::string whole;
  for (const auto& batch : batches) whole += batch.bytes;
  EXPECT_EQ(log.bounds().bytes, whole.size());
  EXPECT_TRUE(read(log, testing::everything_from(log.bounds().start)) == whole);

  Offset due = log.bounds().start;
  for (const auto& batch : batches) {
    // From the end of the one before, also where compaction has left a gap.
    for (const auto from : {due, batch.base, batch.last}) {
      const ReadRequest one{.from = from, .limit = batch.last + 1, .bytes_max = 1};
      EXPECT_TRUE(read(log, one) == batch.bytes) << "from " << from.value;
    }
    due = batch.last + 1;
  }
  subject_.close(opened->log);
}

TEST_P(GoldenSegmentsTest, LookUpTimes) {
  const auto batches = batches_of(folder());
  copy_to_disk();
  subject_.lock();
  auto opened = subject_.open();
  ASSERT_TRUE(opened) << to_string(opened.error());
  for (const auto& wanted : batches) {
    if (wanted.max_timestamp.ms < 0) continue;
    const auto found = subject_.run(opened->log->batch_at(wanted.max_timestamp));
    ASSERT_TRUE(found) << to_string(found.error());
    const auto expected = std::ranges::find_if(batches, [&](const GoldenBatch& batch) {
      return batch.max_timestamp >= wanted.max_timestamp;
    });
    // Formats before V2 do not say where a compressed message begins: any offset of it will do.
    EXPECT_GE(found->base_offset, expected->base);
    EXPECT_LE(found->base_offset, expected->last);
  }
  subject_.close(opened->log);
}

// Also indexes of older brokers, whose rows are as right as ours, and what the kernel keeps there.
TEST_P(GoldenSegmentsTest, KeepEveryFileThatIsSound) {
  if (!GetParam().clean || GetParam().indexes != Indexes::theirs) return;
  if (GetParam().folder.starts_with("kafka-0.9")) return;  // no time indexes yet
  copy_to_disk();
  subject_.lock();
  auto opened = subject_.open();
  ASSERT_TRUE(opened) << to_string(opened.error());
  read(*opened->log, testing::everything_from(opened->log->bounds().start));
  subject_.close(opened->log);
  subject_.close_storage();
  for (const auto& file : files_of(folder(), "")) {
    const auto name = file.filename().string();
    if (name.ends_with(".jsonl")) continue;
    EXPECT_TRUE(subject_.content(std::string(orders_folder) + "/" + name) == content_of(file))
        << name;
  }
}

// Older brokers wrote other rows, as right as these (one for an append of several batches).
TEST_P(GoldenSegmentsTest, RebuildTheIndexesOfTodaysBroker) {
  if (GetParam().indexes != Indexes::none || !GetParam().folder.starts_with("kafka-4.4.0/v2-")) {
    return;
  }
  copy_to_disk();
  subject_.lock();
  auto opened = subject_.open({.index_interval_bytes = 512});
  ASSERT_TRUE(opened) << to_string(opened.error());
  read(*opened->log, testing::everything_from(opened->log->bounds().start));
  subject_.close(opened->log);
  for (const auto* suffix : {".index", ".timeindex"}) {
    for (const auto& file : files_of(folder(), suffix)) {
      const auto name = file.filename().string();
      EXPECT_TRUE(subject_.content(std::string(orders_folder) + "/" + name) == content_of(file))
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Releases, GoldenSegmentsTest, ::testing::ValuesIn(golden_cases()));

}  // namespace
}  // namespace millrace::filelog
