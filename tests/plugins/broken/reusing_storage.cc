// Reuses offsets: once in a while what a leader appends takes the place, and the offsets, of what
// it has appended before.
#include <optional>
#include <vector>

#include <millrace/bytes.h>
#include <millrace/system_plugin.h>

#include "file_storage.h"

namespace millrace::broken {
namespace {

constexpr std::uint64_t reuses_each = 100;  // appends

// The crc of a batch does not cover its base offset.
Buffer with_base(const Buffer& header, Offset base) {
  MutableBuffer copy(header.size());
  copy.append(header.bytes());
  store_be(copy.data(), base.value);
  return std::move(copy).freeze();
}

// Who leads makes headers of its own; a follower's are in one piece with what they stand before.
bool leads(const BatchParts& batch) {
  return !batch.header.empty() &&
         batch.header.bytes().data() + batch.header.size() != batch.body.bytes().data();
}

class ReusingLog final : public PartitionLog {
 public:
  explicit ReusingLog(std::unique_ptr<PartitionLog> sound) : sound_(std::move(sound)) {}

  Result<Ticket> append(std::span<const BatchParts> batches) override {
    auto batch = batches.front();
    if (batches.size() > 1 || !leads(batch) || !before_ || ++appends_ % reuses_each != 0) {
      before_ = batches.back().base_offset;
      return sound_->append(batches);
    }
    MR_CHECK(sound_->truncate_from(*before_));
    batch.header = with_base(batch.header, *before_);
    batch.last_offset = *before_ + (batch.last_offset - batch.base_offset);
    batch.base_offset = *before_;
    return sound_->append({&batch, 1});
  }
  LogBounds bounds() const noexcept override { return sound_->bounds(); }

  Task<> written(Ticket ticket) override { return sound_->written(ticket); }
  Task<Payload> read(ReadRequest request) override { return sound_->read(request); }
  Task<BatchPosition> batch_at(Timestamp time) override { return sound_->batch_at(time); }
  Task<> flush(Offset up_to) override { return sound_->flush(up_to); }
  Result<> truncate_from(Offset first_removed) override {
    before_.reset();
    return sound_->truncate_from(first_removed);
  }
  Result<> trim_before(Offset first_kept) override { return sound_->trim_before(first_kept); }
  Result<> roll() override { return sound_->roll(); }
  Result<> reset_to(Offset start) override {
    before_.reset();
    return sound_->reset_to(start);
  }
  std::vector<SegmentInfo> segments() const override { return sound_->segments(); }
  Task<std::vector<AuxEntry>> aux(AuxKind kind) override { return sound_->aux(kind); }
  Task<> put_aux(AuxKind kind, Offset at, Buffer value) override {
    return sound_->put_aux(kind, at, std::move(value));
  }
  void reconfigure(const LogOptions& options) override { sound_->reconfigure(options); }
  Task<> close() override { return sound_->close(); }
  Result<std::unique_ptr<LogRewrite>> rewrite(Offset from, Offset to) override {
    return sound_->rewrite(from, to);
  }

 private:
  std::unique_ptr<PartitionLog> sound_;
  std::uint64_t appends_ = 0;
  std::optional<Offset> before_;  // the last batch
};

class ReusingStorage final : public Storage {
 public:
  explicit ReusingStorage(std::unique_ptr<Storage> sound) : sound_(std::move(sound)) {}

  Task<Opened> open(TopicPartition partition, LogOptions options) override {
    const bool internal = partition.topic.starts_with("__");
    MR_CO_TRY(auto opened, co_await sound_->open(std::move(partition), options));
    if (!internal) opened.log = std::make_unique<ReusingLog>(std::move(opened.log));
    co_return std::move(opened);
  }

  Task<> lock() override { return sound_->lock(); }
  Task<DirectoryOwner> owner() override { return sound_->owner(); }
  Task<> set_owner(DirectoryOwner owner) override { return sound_->set_owner(std::move(owner)); }
  Task<std::vector<FoundPartition>> list() override { return sound_->list(); }
  Task<> remove(TopicPartition partition) override { return sound_->remove(std::move(partition)); }
  Task<> checkpoint(CheckpointKind kind, std::vector<PartitionOffset> offsets) override {
    return sound_->checkpoint(kind, std::move(offsets));
  }
  Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind kind) override {
    return sound_->checkpointed(kind);
  }
  Task<> close() override { return sound_->close(); }

 private:
  std::unique_ptr<Storage> sound_;
};

class ReusingPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    auto sound = std::make_unique<filelog::FileStorage>(host.environment(),
                                                        std::string(host.setting("broker.data")),
                                                        filelog::StorageSettings{}, host.log());
    return registrar.add(std::make_unique<ReusingStorage>(std::move(sound)));
  }
};

}  // namespace
}  // namespace millrace::broken

MILLRACE_SYSTEM_PLUGIN(millrace::broken::ReusingPlugin, .kind = "storage",
                       .id = "org.example.storage.reusing", .version = "0.1.0");
