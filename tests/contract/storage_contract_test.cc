// The storage plugins, from their shared objects and in the simulated environment: the contract,
// the match of filelog with memory, and what filelog keeps over crashes.
#include <optional>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>
#include <millrace/testing/storage_contract.h>

namespace millrace::testing {
namespace {

class SimSubject final : public StorageSubject {
 public:
  SimSubject(std::string plugin, std::uint64_t seed)
      : path_(std::string(MILLRACE_PLUGIN_DIR) + "/storage/" + plugin + ".so"),
        world_(seed),
        node_(world_.add_node("b1")) {
    load();
  }

  Storage& storage() override { return *plugin_->registered().storage; }
  Shard& shard() override { return *node_.shards().front(); }
  void run_until(const std::function<bool()>& done) override {
    ASSERT_TRUE(world_.run_until(done, std::chrono::minutes(10))) << "nothing happens any more";
  }
  void restart() override {
    plugin_.reset();
    load();
  }

  SimEnvironment& node() { return node_; }
  SimWorld& world() { return world_; }
  KeptLog& log_lines() { return plugin_->host().kept_log(); }

  /// The power goes and comes back. `log` is what was open.
  void crash(std::unique_ptr<PartitionLog> log) {
    if (!node_.crashed()) node_.crash();
    if (log) EXPECT_FALSE(run(log->close()));
    log.reset();
    (void)run(storage().close());
    plugin_.reset();
    node_.restart();
    load();
  }

 private:
  void load() {
    auto loaded = load_plugin(path_, node_, {}, {{"broker.data", "/data"}});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    plugin_.emplace(*std::move(loaded));
  }

  const std::string path_;
  SimWorld world_;
  SimEnvironment& node_;
  std::optional<LoadedPlugin> plugin_;
};

std::unique_ptr<StorageSubject> filelog() { return std::make_unique<SimSubject>("filelog", 1); }
std::unique_ptr<StorageSubject> memory() { return std::make_unique<SimSubject>("memory", 1); }

INSTANTIATE_TEST_SUITE_P(Plugins, StorageContract,
                         ::testing::Values(StorageCase{"filelog", filelog},
                                           StorageCase{"memory", memory, false}),
                         [](const auto& info) { return info.param.name; });

TEST(FilelogTest, DoesWhatMemoryDoesUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFatalFailure(); ++seed) {
    SimSubject subject("filelog", seed);
    SimSubject oracle("memory", seed);
    ASSERT_TRUE(subject.run(subject.storage().lock()));
    match_random_operations(subject, oracle, seed, 150);
  }
}

TEST(FilelogTest, LocksItsDirectory) {
  SimSubject subject("filelog", 1);
  ASSERT_TRUE(subject.run(subject.storage().lock()));
  auto other = load_plugin(std::string(MILLRACE_PLUGIN_DIR) + "/storage/filelog.so", subject.node(),
                           {}, {{"broker.data", "/data"}});
  ASSERT_TRUE(other) << to_string(other.error());
  EXPECT_EQ(subject.run(other->registered().storage->lock()).error().code, Errc::conflict);
}

// ---- crashes ----

/// What may be found after a crash: what the log held at some moment since the last flush, or a
/// part of that from its front, but not less than was flushed.
class CrashModel {
 public:
  void appended(std::string_view batch) { current_ += batch; }
  void flushed() {
    flushed_bytes_ = current_.size();
    earlier_.clear();
  }
  void cut_to(std::size_t bytes) {
    earlier_.push_back(current_);
    current_.resize(bytes);
    flushed_bytes_ = std::min(flushed_bytes_, bytes);
  }
  void check(std::string_view found) const {
    ASSERT_GE(found.size(), flushed_bytes_) << "flushed data is gone";
    bool known = std::string_view(current_).starts_with(found);
    for (const auto& content : earlier_) known |= std::string_view(content).starts_with(found);
    ASSERT_TRUE(known) << found.size() << " bytes that were never the front of the log";
  }
  void found(std::string_view content) {
    earlier_.clear();
    current_ = content;
    flushed_bytes_ = content.size();
  }
  const std::string& current() const { return current_; }

 private:
  std::string current_;
  std::vector<std::string> earlier_;
  std::size_t flushed_bytes_ = 0;
};

class CrashRun {
 public:
  explicit CrashRun(std::uint64_t seed) : subject_("filelog", seed), random_(seed) {}

  void run(int crashes) {
    ASSERT_NO_FATAL_FAILURE(open());
    for (int count = 0; count < crashes; ++count) {
      SCOPED_TRACE("crash " + std::to_string(count));
      for (auto operations = below(30); operations > 0; --operations) {
        ASSERT_NO_FATAL_FAILURE(operate());
      }
      // At times in the midst of a flush.
      std::optional<Pending<>> flush;
      if (below(2) == 0) flush = start(subject_.shard(), log_->flush(log_->bounds().end));
      subject_.crash(std::move(log_));
      ASSERT_NO_FATAL_FAILURE(open());
    }
    ASSERT_TRUE(subject_.run(log_->close()));
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }

  void open() {
    ASSERT_TRUE(subject_.run(subject_.storage().lock()));
    const LogOptions options{.segment_bytes = 1500, .index_interval_bytes = 200};
    auto opened = subject_.run(subject_.storage().open(orders, options));
    ASSERT_TRUE(opened) << to_string(opened.error());
    log_ = std::move(opened->log);
    const auto found = read_text(subject_, *log_, everything_from({0}));
    SCOPED_TRACE(opened->cut_reason);
    ASSERT_NO_FATAL_FAILURE(model_.check(found));
    model_.found(found);
    boundaries_.clear();
    for (std::size_t at = 0; at < found.size();) {
      const auto header = read_batch_header(as_bytes(std::string_view(found).substr(at)));
      ASSERT_TRUE(header) << to_string(header.error());
      boundaries_.push_back({header->base_offset, at});
      at += header->total_bytes();
    }
  }

  void operate() {
    const auto what = below(12);
    if (what < 8) {
      boundaries_.push_back({log_->bounds().end, model_.current().size()});
      const auto batch = append_batch(*log_, static_cast<std::int32_t>(1 + below(4)),
                                      {1000 + below(5000)}, static_cast<std::size_t>(below(300)));
      model_.appended(batch.text());
    } else if (what == 8) {
      ASSERT_TRUE(subject_.run(log_->flush(log_->bounds().end)));
      model_.flushed();
    } else if (what == 9) {
      ASSERT_TRUE(log_->roll());
    } else if (what == 10) {
      const std::vector<PartitionOffset> point{{orders, log_->bounds().recovery_point}};
      ASSERT_TRUE(
          subject_.run(subject_.storage().checkpoint(CheckpointKind::recovery_point, point)));
    } else if (!boundaries_.empty() && below(3) == 0) {
      const auto at =
          static_cast<std::size_t>(below(static_cast<std::int64_t>(boundaries_.size())));
      const auto [offset, bytes] = boundaries_[at];
      ASSERT_TRUE(log_->truncate_from(offset));
      boundaries_.resize(at);
      model_.cut_to(bytes);
    }
  }

  SimSubject subject_;
  std::mt19937_64 random_;
  std::unique_ptr<PartitionLog> log_;
  CrashModel model_;
  std::vector<std::pair<Offset, std::size_t>> boundaries_;
};

TEST(FilelogTest, KeepsWhatWasFlushedOverCrashes) {
  for (std::uint64_t seed = 1; seed <= 100 && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CrashRun(seed).run(8);
  }
}

}  // namespace
}  // namespace millrace::testing
