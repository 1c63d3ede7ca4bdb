#include "stored_folder.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <millrace/bytes.h>
#include <millrace/storage.h>
#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "golden_file.h"
#include "kernel/partition/aborted_transactions.h"
#include "kernel/partition/epoch_cache.h"
#include "kernel/partition/producer_state.h"
#include "shipped_codecs.h"

namespace millrace::wire {

namespace {

namespace fs = std::filesystem;

const std::string data_folder = "/data";
const TopicPartition stored_as{"stored", 0};
constexpr auto time_max = std::chrono::minutes(10);

Error differs(std::string what) { return {Errc::corrupt, std::move(what)}; }

/// What the partition's files are called, with their content.
Result<std::vector<std::pair<std::string, Buffer>>> files_of(const fs::path& folder) {
  std::vector<std::pair<std::string, Buffer>> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".jsonl") || name.ends_with(".gz")) continue;
    MR_TRY(auto content, read_file(entry.path()));
    files.emplace_back(name, std::move(content));
  }
  std::ranges::sort(files, {}, [](const auto& file) { return file.first; });
  return files;
}

/// The rows of a producer snapshot. Kafka has them in the order of a hash table.
std::multiset<std::string> rows_of(const Buffer& snapshot) {
  constexpr std::size_t head_bytes = 10;
  constexpr std::size_t row_bytes = 46;
  std::multiset<std::string> rows;
  for (auto at = head_bytes; at < snapshot.size(); at += row_bytes) {
    rows.emplace(snapshot.text().substr(at, row_bytes));
  }
  return rows;
}

class StoredFolder {
 public:
  Result<> check(const fs::path& folder, std::span<const StoredBatch> batches) {
    MR_TRY(const auto files, files_of(folder));
    MR_CHECK(copy_in(files));
    MR_CHECK(open());
    MR_CHECK(check_log(files, batches));
    MR_CHECK(check_aux());
    MR_CHECK(run(log_->close()));
    return check_indexes(files, batches);
  }

 private:
  template <class T>
  Result<T> run(Task<T> task) {
    auto pending = start(*node_.shards().front(), std::move(task));
    if (!world_.run_until([&pending] { return pending.is_ready(); }, time_max)) {
      return Error{Errc::timed_out, "the storage plugin does not come to an end"};
    }
    return pending.await_resume();
  }

  Result<> copy_in(const std::vector<std::pair<std::string, Buffer>>& files) {
    const auto folder = data_folder + "/" + to_string(stored_as);
    MR_CHECK(node_.files().make_folders(folder));
    for (const auto& [name, content] : files) {
      MR_CHECK(replace_file(node_.files(), folder + "/" + name, content));
    }
    return replace_file(node_.files(), data_folder + "/.kafka_cleanshutdown", {});
  }

  Result<> open() {
    const auto path = program_folder() + "/../lib/millrace/plugins/storage/filelog.so";
    auto loaded = testing::load_plugin(path, node_, {}, {{"broker.data", data_folder}});
    MR_CHECK(loaded);
    plugin_.emplace(*std::move(loaded));
    auto& storage = *plugin_->registered().storage;
    MR_CHECK(run(storage.lock()));
    MR_TRY(auto opened, run(storage.open(stored_as, {})));
    if (opened.bytes_cut > 0) return differs("opening it cut: " + opened.cut_reason);
    log_ = std::move(opened.log);
    return {};
  }

  Result<Buffer> read(ReadRequest request) {
    MR_TRY(const auto payload, run(log_->read(request)));
    return payload.flatten();
  }

  Result<> check_log(const std::vector<std::pair<std::string, Buffer>>& files,
                     std::span<const StoredBatch> batches) {
    std::string whole;
    for (const auto& [name, content] : files) {
      if (name.ends_with(".log")) whole += content.text();
    }
    if (!batches.empty()) {
      const ReadRequest all{
          .from = log_->bounds().start, .limit = log_->bounds().end, .bytes_max = UINT64_MAX};
      MR_TRY(const auto found, read(all));
      if (found.text() != whole) return differs("the log reads differently");
    }
    for (const auto& batch : batches) {
      for (const auto from : {batch.base, batch.last}) {
        const ReadRequest one{.from = from, .limit = batch.last + 1, .bytes_max = 1};
        MR_TRY(const auto found, read(one));
        if (found.text() != std::string_view(whole).substr(batch.position, batch.bytes)) {
          return differs("offset " + std::to_string(from.value) + " does not lead to its batch");
        }
      }
    }
    return {};
  }

  Result<> check_aux() {
    MR_TRY(const auto snapshots, run(log_->aux(AuxKind::producer_snapshot)));
    for (const auto& one : snapshots) {
      kernel::ProducerStates producers;
      MR_CHECK(producers.restore(one.value, {0}));
      if (rows_of(producers.snapshot()) != rows_of(one.value)) {
        return differs("the producer snapshot of " + std::to_string(one.at.value) +
                       " is written differently");
      }
    }
    MR_TRY(const auto epochs, run(log_->aux(AuxKind::leader_epochs)));
    for (const auto& one : epochs) {
      MR_TRY(const auto cache, kernel::EpochCache::parse(one.value.text()));
      if (cache.checkpoint() != one.value.text()) {
        return differs("the leader epochs are written differently");
      }
    }
    MR_TRY(const auto aborted, run(log_->aux(AuxKind::aborted_transactions)));
    for (const auto& one : aborted) {
      kernel::AbortedTransactions transactions;
      MR_CHECK(transactions.add_all(one.value));
      if (transactions.encode({0}, {INT64_MAX}).text() != one.value.text()) {
        return differs("the aborted transactions of " + std::to_string(one.at.value) +
                       " are written differently");
      }
    }
    return {};
  }

  /// A row for a batch of an older format may name an offset that only opening it would tell from
  /// a wrong one, and before 0.10.1 there was no index of times: such indexes may be made anew.
  Result<> check_indexes(const std::vector<std::pair<std::string, Buffer>>& files,
                         std::span<const StoredBatch> batches) {
    const bool unchanged =
        std::ranges::all_of(batches, [](const auto& batch) { return batch.magic == 2; });
    for (const auto& [name, content] : files) {
      if (!name.ends_with("index")) continue;
      const auto path = data_folder + "/" + to_string(stored_as) + "/" + name;
      MR_TRY(const auto found, millrace::read_file(node_.files(), path));
      if (unchanged && found.text() != content.text()) {
        return differs(name + " was not taken for good");
      }
      if (name.ends_with(".index") && !rises(found)) return differs(name + " does not rise");
    }
    return {};
  }

  static bool rises(const Buffer& index) {
    constexpr std::size_t row_bytes = 8;
    std::int32_t last = -1;
    for (std::size_t at = 0; at + row_bytes <= index.size(); at += row_bytes) {
      const auto offset = load_be<std::int32_t>(index.data() + at);
      if (offset <= last) return false;
      last = offset;
    }
    return true;
  }

  testing::SimWorld world_{1};
  testing::SimEnvironment& node_ = world_.add_node("tool");
  std::optional<testing::LoadedPlugin> plugin_;
  std::unique_ptr<PartitionLog> log_;
};

}  // namespace

Result<> check_stored_folder(const fs::path& folder, std::span<const StoredBatch> batches) {
  return StoredFolder().check(folder, batches);
}

}  // namespace millrace::wire
