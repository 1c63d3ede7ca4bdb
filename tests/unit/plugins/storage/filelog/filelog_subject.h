// The storage itself, without its shared object, on a simulated disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>
#include <millrace/testing/storage_subject.h>

#include "plugins/storage/filelog/file_storage.h"

namespace millrace::filelog {

inline constexpr const char* orders_folder = "/data/orders-0";

class FilelogSubject final : public testing::StorageSubject {
 public:
  explicit FilelogSubject(std::uint64_t seed = 1, StorageSettings settings = {})
      : world_(seed),
        node_(world_.add_node("b1")),
        settings_(settings),
        log_(kept_, "storage.filelog") {
    make();
  }

  Storage& storage() override { return *storage_; }
  void restart() override { make(); }
  Shard& shard() override { return *node_.shards().front(); }
  void run_until(const std::function<bool()>& done) override {
    ASSERT_TRUE(world_.run_until(done, std::chrono::minutes(10)));
  }

  testing::SimWorld& world() { return world_; }
  testing::SimEnvironment& node() { return node_; }
  testing::SimDisk& disk() { return node_.files(); }
  const testing::KeptLog& lines() const { return kept_; }

  void lock() {
    const auto locked = run(storage_->lock());
    ASSERT_TRUE(locked) << to_string(locked.error());
  }
  Result<Opened> open(LogOptions options = {}, TopicPartition partition = testing::orders) {
    return run(storage_->open(std::move(partition), options));
  }
  void close(std::unique_ptr<PartitionLog>& log) {
    const auto closed = run(log->close());
    ASSERT_TRUE(closed) << to_string(closed.error());
    log.reset();
  }
  /// All that is open has been closed.
  void close_storage() {
    const auto closed = run(storage_->close());
    ASSERT_TRUE(closed) << to_string(closed.error());
  }
  /// The power goes and comes back.
  void crash(std::unique_ptr<PartitionLog>& log) { end(log, &testing::SimEnvironment::crash); }
  /// The process dies, and the machine does not.
  void kill(std::unique_ptr<PartitionLog>& log) { end(log, &testing::SimEnvironment::kill); }
  using Death = void (testing::SimEnvironment::*)();
  void end(std::unique_ptr<PartitionLog>& log, Death death) {
    (node_.*death)();
    if (log) (void)run(log->close());
    log.reset();
    storage_.reset();
    node_.restart();
    make();
  }

  // ---- the disk, behind the storage's back ----

  void write(const std::string& path, std::string_view content) {
    const auto folder = path.substr(0, path.rfind('/'));
    ASSERT_TRUE(disk().make_folders(folder));
    const auto written = replace_file(disk(), path, as_bytes(content));
    ASSERT_TRUE(written) << to_string(written.error());
    ASSERT_TRUE(disk().sync_folder("/data"));
  }
  std::string content(const std::string& path) {
    const auto found = read_file(disk(), path);
    return found ? std::string(found->text()) : to_string(found.error());
  }
  bool exists(const std::string& path) { return disk().info(path).has_value(); }
  std::vector<std::string> names(const std::string& folder) {
    std::vector<std::string> found;
    if (const auto listing = disk().list(folder)) {
      for (const auto& file : *listing) found.push_back(file.name);
    }
    return found;
  }

 private:
  void make() {
    storage_.reset();
    storage_ = std::make_unique<FileStorage>(node_, "/data", settings_, log_);
  }

  testing::SimWorld world_;
  testing::SimEnvironment& node_;
  testing::KeptLog kept_;
  StorageSettings settings_;
  Log log_;
  std::unique_ptr<FileStorage> storage_;
};

}  // namespace millrace::filelog
