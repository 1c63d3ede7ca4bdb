#include "standalone.h"

#include <charconv>

#include <millrace/data_folder.h>

namespace millrace::standalone {

namespace {

// Below this size a journal is not worth replacing.
constexpr std::uint64_t journal_bytes_kept = 1 << 20;
constexpr std::string_view epoch_key = "/millrace/session_epoch";
constexpr std::string_view broker_key = "/millrace/broker_id";

constexpr std::string_view journal_name = "coordination.journal";

// The process is the session: it ends when the process does.
class ProcessLease final : public Lease {
 public:
  explicit ProcessLease(std::int64_t epoch) : epoch_(epoch) {}
  MonoTime valid_until() const noexcept override { return MonoTime::max(); }
  std::int64_t epoch() const noexcept override { return epoch_; }
  Task<> lost() override { co_return co_await never_.wait(); }

 private:
  std::int64_t epoch_;
  Event never_;
};

// Ephemeral keys are not in the file; one that replaces a persistent key removes that from it.
std::vector<Change> durable_part(const std::vector<Change>& changes) {
  auto durable = changes;
  for (auto& change : durable) {
    if (change.now && change.now->ephemeral) change.now.reset();
  }
  return durable;
}

bool any_persistent(const std::vector<Change>& changes, const Tree& tree) {
  for (const auto& change : changes) {
    if (change.now && !change.now->ephemeral) return true;
    const auto before = tree.get(change.key);
    if (before && !before->ephemeral) return true;
  }
  return false;
}

std::uint64_t bytes_of(const std::vector<Change>& changes) {
  std::uint64_t bytes = 0;
  for (const auto& change : changes) bytes += change.key.size() + change.now->value.size();
  return bytes;
}

}  // namespace

Result<> Standalone::check_open() const {
  if (journal_) return {};
  return Error{Errc::closed, "coordination has not been joined"};
}

// Blocks on the disk, on a worker; nothing else runs in this object until it is done.
Result<> Standalone::open() {
  auto& files = environment_.files();
  MR_CHECK(make_data_folder(files, folder_));
  // Files, for Kafka refuses a data directory with folders that are no partitions.
  MR_TRY(lock_, files.lock(folder_ + "/coordination.lock"));
  const auto path = folder_ + "/" + std::string(journal_name);
  MR_TRY(auto opened,
         Journal::open(files, path, [this](std::vector<Change> changes) { tree_.apply(changes); }));
  journal_ = std::move(opened.journal);
  if (opened.seal_damaged) {
    log_.warning(
        "the header of the journal is damaged: whether its last change is whole cannot be "
        "told; the next change mends it",
        {{"path", path}});
  }
  if (opened.bytes_cut > 0) {
    log_.warning("a change that was being written when the broker last died is not kept",
                 {{"path", path}, {"cut_bytes", opened.bytes_cut}});
  }
  return {};
}

// What is stored speaks of its broker: under another number all of it would belong to nobody.
Result<> Standalone::check_broker(Member self) const {
  const auto known = tree_.get(std::string(broker_key));
  const auto here = std::to_string(self.broker_id);
  if (!known || known->value == here) return {};
  return Error{Errc::conflict, folder_ + "/" + std::string(journal_name) +
                                   ": expected broker.id = " + here + ", found that of broker " +
                                   known->value + "; set broker.id to " + known->value +
                                   " or give this broker a directory of its own"};
}

Task<std::unique_ptr<Lease>> Standalone::join(Member self) {
  if (!journal_) {
    auto opening = on_worker(environment_.workers(), [this] { return open(); });
    MR_CO_CHECK(co_await std::move(opening));
  }
  MR_CO_CHECK(check_broker(self));
  std::int64_t epoch = 0;
  const std::string key(epoch_key);
  if (const auto last = tree_.get(key)) {
    const auto& text = last->value;
    std::from_chars(text.data(), text.data() + text.size(), epoch);
  }
  ++epoch;
  std::vector<Write> writes;
  writes.push_back({.key = key, .value = std::to_string(epoch)});
  writes.push_back({.key = std::string(broker_key), .value = std::to_string(self.broker_id)});
  MR_CO_CHECK(co_await commit(std::move(writes)));
  co_return std::make_unique<ProcessLease>(epoch);
}

Task<Versioned> Standalone::get(std::string key) {
  MR_CO_CHECK(check_open());
  co_return tree_.get(key);
}

Task<std::vector<std::string>> Standalone::list(std::string prefix) {
  MR_CO_CHECK(check_open());
  co_return tree_.children(prefix);
}

Task<std::vector<Version>> Standalone::commit(std::vector<Write> writes) {
  MR_CO_CHECK(check_open());
  MR_CO_TRY(const auto turn, co_await writing_.lock());
  MR_CO_TRY(auto planned, tree_.plan(writes));
  if (any_persistent(planned.changes, tree_)) {
    MR_CO_CHECK(co_await write(durable_part(planned.changes)));
  }
  tree_.apply(planned.changes);
  changed_.notify_all();
  MR_CO_CHECK(co_await shrink());
  co_return std::move(planned.versions);
}

Task<> Standalone::write(std::vector<Change> changes) {
  auto writing = on_worker(environment_.workers(), [this, changes = std::move(changes)] {
    return journal_->append(changes);
  });
  co_return co_await std::move(writing);
}

// What was written stays written when this fails, so that is a warning.
Task<> Standalone::shrink() {
  if (journal_->bytes() < journal_bytes_kept) co_return {};
  auto all = tree_.persistent();
  if (journal_->bytes() / 4 < bytes_of(all)) co_return {};
  auto rewriting = on_worker(environment_.workers(),
                             [this, all = std::move(all)] { return journal_->rewrite(all); });
  const auto rewritten = co_await std::move(rewriting);
  if (!rewritten) {
    log_.warning("the journal could not be made smaller; it is tried again",
                 {{"error", to_string(rewritten.error())}});
  }
  co_return {};
}

Task<Seen> Standalone::next_change(std::string prefix, Seen seen) {
  MR_CO_CHECK(check_open());
  while (tree_.seen(prefix) == seen) MR_CO_CHECK(co_await changed_.wait());
  co_return tree_.seen(prefix);
}

}  // namespace millrace::standalone
