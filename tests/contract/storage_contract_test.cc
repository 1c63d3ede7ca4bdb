// The storage plugins, from their shared objects and in the simulated environment: the contract,
// the match of filelog with memory, and what filelog keeps over crashes.
#include <optional>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>
#include <millrace/testing/storage_contract.h>
#include <millrace/testing/storage_match.h>

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
    if (log) (void)run(log->close());
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
  /// The batch may be on disk, whatever becomes of its append.
  void appending(std::string_view batch) { earlier_.push_back(current_ + std::string(batch)); }
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
  /// All of it is flushed; as a whole it is this or what it was, until rewritten() says which.
  void rewriting(std::string content) { rewritten_ = std::move(content); }
  void rewritten() { found(*std::exchange(rewritten_, std::nullopt)); }
  void check(std::string_view found) const {
    if (rewritten_ && found == *rewritten_) return;
    ASSERT_GE(found.size(), flushed_bytes_) << "flushed data is gone";
    bool known = std::string_view(current_).starts_with(found);
    for (const auto& content : earlier_) known |= std::string_view(content).starts_with(found);
    ASSERT_TRUE(known) << found.size() << " bytes that were never the front of the log";
  }
  void found(std::string_view content) {
    earlier_.clear();
    rewritten_.reset();
    current_ = content;
    flushed_bytes_ = content.size();
  }
  std::size_t bytes() const { return current_.size(); }
  std::string_view content() const { return current_; }

 private:
  std::string current_;
  std::vector<std::string> earlier_;
  std::optional<std::string> rewritten_;
  std::size_t flushed_bytes_ = 0;
};

/// Operates on a log until the power goes, in the midst of a change of the disk; starts again, at
/// times failing in that too; and compares.
class CrashRun {
 public:
  explicit CrashRun(std::uint64_t seed) : subject_("filelog", seed), random_(seed) {}

  void run(int crashes) {
    for (int count = 0; count < crashes; ++count) {
      SCOPED_TRACE("after crash " + std::to_string(count));
      ASSERT_TRUE(open()) << failure_;
      ASSERT_NO_FATAL_FAILURE(compare());
      subject_.node().files().crash_after(static_cast<std::uint64_t>(below(60)));
      failure_.clear();
      for (auto operations = below(40); operations > 0 && failure_.empty(); --operations) operate();
      subject_.crash(std::move(log_));
      while (below(2) == 0) {
        subject_.node().files().crash_after(static_cast<std::uint64_t>(below(12)));
        (void)open();
        subject_.crash(std::move(log_));
      }
    }
  }

 private:
  struct Boundary {
    Offset base;
    std::size_t position;
  };

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }
  template <class R>
  bool succeeded(const R& result) {
    if (!result) failure_ = to_string(result.error());
    return result.has_value();
  }

  bool open() {
    if (!succeeded(subject_.run(subject_.storage().lock()))) return false;
    const LogOptions options{.segment_bytes = 1500, .index_interval_bytes = 200};
    auto opened = subject_.run(subject_.storage().open(orders, options));
    if (!succeeded(opened)) return false;
    log_ = std::move(opened->log);
    cut_reason_ = opened->cut_reason;
    return true;
  }

  void compare() {
    SCOPED_TRACE(cut_reason_);
    const auto found = read_text(subject_, *log_, everything_from({0}));
    ASSERT_NO_FATAL_FAILURE(model_.check(found));
    model_.found(found);
    find_boundaries();
  }

  void find_boundaries() {
    const auto content = model_.content();
    boundaries_.clear();
    for (std::size_t at = 0; at < content.size();) {
      const auto header = read_batch_header(as_bytes(content.substr(at)));
      ASSERT_TRUE(header) << to_string(header.error());
      boundaries_.push_back({header->base_offset, at});
      at += header->total_bytes();
    }
  }

  void operate() {
    const auto what = below(13);
    if (what == 12) {
      rewrite();
    } else if (what < 7) {
      append();
    } else if (what == 7) {
      auto snapshot = Buffer::copy_of("a snapshot");
      const auto at = log_->bounds().end;
      succeeded(subject_.run(log_->put_aux(AuxKind::producer_snapshot, at, std::move(snapshot))));
    } else if (what == 8) {
      if (succeeded(subject_.run(log_->flush(log_->bounds().end)))) model_.flushed();
    } else if (what == 9) {
      succeeded(log_->roll());
    } else if (what == 10) {
      std::vector<PartitionOffset> point{{orders, log_->bounds().recovery_point}};
      succeeded(subject_.run(
          subject_.storage().checkpoint(CheckpointKind::recovery_point, std::move(point))));
    } else if (!boundaries_.empty() && below(3) == 0) {
      truncate();
    }
  }

  void append() {
    const Boundary here{log_->bounds().end, model_.bytes()};
    const auto batch = make_batch(here.base, static_cast<std::int32_t>(1 + below(4)),
                                  {1000 + below(5000)}, static_cast<std::size_t>(below(300)));
    const auto parts = parts_of(batch);
    model_.appending(batch.text());
    if (!succeeded(log_->append(std::span(&parts, 1)))) return;
    model_.appended(batch.text());
    boundaries_.push_back(here);
  }

  // Flushed before, so that it is all there, with or without some of its batches.
  void rewrite() {
    if (!succeeded(subject_.run(log_->flush(log_->bounds().end)))) return;
    model_.flushed();
    const auto segments = log_->segments();
    if (segments.size() < 2) return;
    const auto older = static_cast<std::int64_t>(segments.size()) - 1;
    const auto first = below(older);
    const auto from = segments[static_cast<std::size_t>(first)].base;
    const auto to = segments[static_cast<std::size_t>(first + 1 + below(older - first))].base;
    std::vector<BatchParts> kept;
    std::string content;
    for (const auto& batch : batches_of(Payload(Buffer::copy_of(model_.content())))) {
      const auto parts = parts_of(batch);
      const bool inside = parts.base_offset >= from && parts.base_offset < to;
      if (inside && below(3) == 0) continue;
      content += batch.text();
      if (inside) kept.push_back(parts);
    }
    auto anew = log_->rewrite(from, to);
    if (!succeeded(anew) || !succeeded((*anew)->append(kept))) return;
    model_.rewriting(std::move(content));
    if (!succeeded(subject_.run((*anew)->commit()))) return;
    model_.rewritten();
    find_boundaries();
  }

  void truncate() {
    const auto at = static_cast<std::size_t>(below(static_cast<std::int64_t>(boundaries_.size())));
    // A reader that holds the file makes the log keep it as it is.
    std::optional<Result<Payload>> reader;
    if (below(2) == 0) reader = subject_.run(log_->read(everything_from({0})));
    model_.cut_to(boundaries_[at].position);
    if (succeeded(log_->truncate_from(boundaries_[at].base))) boundaries_.resize(at);
  }

  SimSubject subject_;
  std::mt19937_64 random_;
  std::unique_ptr<PartitionLog> log_;
  CrashModel model_;
  std::vector<Boundary> boundaries_;
  std::string failure_;
  std::string cut_reason_;
};

TEST(FilelogTest, KeepsWhatWasFlushedOverCrashes) {
  for (std::uint64_t seed = 1; seed <= 150 && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CrashRun(seed).run(8);
  }
}

}  // namespace
}  // namespace millrace::testing
