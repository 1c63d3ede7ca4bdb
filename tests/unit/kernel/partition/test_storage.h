// A log in memory for the tests of a partition: it can be made slow or broken at each step.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <millrace/batch.h>
#include <millrace/environment.h>
#include <millrace/storage.h>

namespace millrace::kernel::testing {

/// What survives closing and opening a log, and the switches that make it misbehave.
struct StoredLog {
  struct Batch {
    Buffer bytes;
    BatchHeader header;
    std::size_t parts = 0;  ///< of the append that wrote it
  };
  std::vector<Batch> batches;
  std::vector<Offset> segment_bases{Offset{0}};
  std::map<Offset, Timestamp> segment_modified;  ///< by base; else the last write
  Timestamp modified;
  Offset start{0};
  Offset recovery_point{0};
  std::map<AuxKind, std::map<Offset, Buffer>> aux;
  LogOptions options;

  std::optional<Error> append_error;
  std::optional<Error> written_error;
  std::optional<Error> read_error;
  std::optional<Error> flush_error;
  bool hold_written = false;
  bool hold_reads = false;
  bool in_files = false;  ///< reads answer file ranges
  std::size_t appends = 0;
  std::size_t flushes = 0;
  std::size_t aux_puts = 0;
  Event released;

  Offset end() const { return batches.empty() ? start : batches.back().header.last_offset() + 1; }
};

/// One batch as a file.
class BatchFile final : public File {
 public:
  explicit BatchFile(Buffer bytes) : bytes_(std::move(bytes)) {}
  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
    const auto left = bytes_.bytes().subspan(std::min<std::size_t>(position, bytes_.size()));
    const auto taken = left.first(std::min(left.size(), into.size()));
    std::ranges::copy(taken, into.begin());
    return taken.size();
  }
  Result<> write_at(std::uint64_t, std::span<const Bytes>) override { std::abort(); }
  Result<> truncate(std::uint64_t) override { std::abort(); }
  Result<> sync() override { std::abort(); }
  Result<std::uint64_t> size() const override { return bytes_.size(); }
  bool resident(std::uint64_t, std::uint64_t) const noexcept override { return true; }
  const std::string& path() const noexcept override { return path_; }

 private:
  Buffer bytes_;
  std::string path_ = "test.log";
};

class TestPartitionLog final : public PartitionLog {
 public:
  TestPartitionLog(StoredLog& stored, Clock& clock) : stored_(stored), clock_(clock) {}

  Result<Ticket> append(std::span<const BatchParts> parts) override {
    if (stored_.append_error) return *stored_.append_error;
    ++stored_.appends;
    for (const auto& part : parts) {
      MutableBuffer bytes(part.header.size() + part.body.size());
      bytes.append(part.header);
      bytes.append(part.body);
      auto frozen = std::move(bytes).freeze();
      const auto header = read_batch_header(frozen);
      MR_ASSERT(header && part.base_offset == stored_.end());
      MR_ASSERT(header->last_offset() == part.last_offset);
      stored_.batches.push_back({std::move(frozen), *header, parts.size()});
    }
    stored_.modified = clock_.wall();
    return Ticket{stored_.appends};
  }
  Task<> written(Ticket) override {
    while (stored_.hold_written) MR_CO_CHECK(co_await stored_.released.wait());
    if (stored_.written_error) co_return *stored_.written_error;
    co_return {};
  }
  Task<Payload> read(ReadRequest request) override {
    while (stored_.hold_reads) MR_CO_CHECK(co_await stored_.released.wait());
    if (stored_.read_error) co_return *stored_.read_error;
    if (request.from < stored_.start || request.from > stored_.end()) {
      co_return Error{Errc::out_of_range, "offset"};
    }
    Payload payload;
    for (const auto& batch : stored_.batches) {
      if (batch.header.last_offset() < request.from) continue;
      if (batch.header.base_offset >= request.limit) break;
      const bool first = payload.empty() && request.at_least_one;
      if (!first && payload.size() + batch.bytes.size() > request.bytes_max) break;
      if (stored_.in_files) {
        payload.add(FileRange{std::make_shared<BatchFile>(batch.bytes), 0, batch.bytes.size()});
      } else {
        payload.add(batch.bytes.slice(0, batch_header_bytes));
        payload.add(batch.bytes.slice(batch_header_bytes));
      }
    }
    co_return std::move(payload);
  }
  Task<BatchPosition> batch_at(Timestamp time) override {
    for (const auto& batch : stored_.batches) {
      if (batch.header.max_timestamp >= time) co_return BatchPosition{batch.header.base_offset};
    }
    co_return BatchPosition{};
  }
  Task<> flush(Offset up_to) override {
    ++stored_.flushes;
    if (stored_.flush_error) co_return *stored_.flush_error;
    stored_.recovery_point = up_to;
    co_return {};
  }
  Result<> truncate_from(Offset first_removed) override {
    std::erase_if(stored_.batches, [first_removed](const auto& batch) {
      return batch.header.last_offset() >= first_removed;
    });
    MR_ASSERT(stored_.end() == first_removed);  // a batch boundary
    std::erase_if(stored_.segment_bases,
                  [first_removed](Offset base) { return base > first_removed; });
    return {};
  }
  Result<> trim_before(Offset first_kept) override {
    stored_.start = first_kept;
    while (stored_.segment_bases.size() > 1 && stored_.segment_bases[1] <= first_kept) {
      stored_.segment_bases.erase(stored_.segment_bases.begin());
    }
    const auto base = stored_.segment_bases.front();
    std::erase_if(stored_.batches,
                  [base](const auto& batch) { return batch.header.base_offset < base; });
    return {};
  }
  Result<> roll() override {
    if (stored_.segment_bases.back() < stored_.end()) {
      stored_.segment_bases.push_back(stored_.end());
    }
    return {};
  }
  Result<> reset_to(Offset start) override {
    stored_.batches.clear();
    stored_.start = start;
    stored_.segment_bases = {start};
    return {};
  }
  std::vector<SegmentInfo> segments() const override {
    std::vector<SegmentInfo> list;
    for (std::size_t at = 0; at < stored_.segment_bases.size(); ++at) {
      const bool active = at + 1 == stored_.segment_bases.size();
      SegmentInfo info{.base = stored_.segment_bases[at],
                       .next = active ? stored_.end() : stored_.segment_bases[at + 1],
                       .modified = stored_.modified,
                       .active = active};
      if (const auto found = stored_.segment_modified.find(info.base);
          found != stored_.segment_modified.end()) {
        info.modified = found->second;
      }
      for (const auto& batch : stored_.batches) {
        if (batch.header.base_offset < info.base || batch.header.base_offset >= info.next) continue;
        info.bytes += batch.bytes.size();
        info.max_timestamp = std::max(info.max_timestamp, batch.header.max_timestamp);
      }
      list.push_back(info);
    }
    return list;
  }
  LogBounds bounds() const noexcept override {
    LogBounds bounds{stored_.start, stored_.end(), stored_.recovery_point};
    for (const auto& batch : stored_.batches) bounds.bytes += batch.bytes.size();
    return bounds;
  }
  Task<std::vector<AuxEntry>> aux(AuxKind kind) override {
    std::vector<AuxEntry> entries;
    for (const auto& [at, value] : stored_.aux[kind]) entries.push_back({at, value});
    co_return std::move(entries);
  }
  Task<> put_aux(AuxKind kind, Offset at, Buffer value) override {
    ++stored_.aux_puts;
    if (value.empty()) {
      stored_.aux[kind].erase(at);
    } else {
      stored_.aux[kind][at] = std::move(value);
    }
    co_return {};
  }
  void reconfigure(const LogOptions& options) override { stored_.options = options; }
  Task<> close() override { co_return {}; }

 private:
  StoredLog& stored_;
  Clock& clock_;
};

/// Keeps one log, whatever the partition is called.
class TestStorage final : public Storage {
 public:
  explicit TestStorage(Environment& environment) : environment_(environment) {}
  StoredLog stored;

  Task<> lock() override { co_return {}; }
  Task<DirectoryOwner> owner() override { co_return DirectoryOwner{}; }
  Task<> set_owner(DirectoryOwner) override { co_return {}; }
  Task<std::vector<FoundPartition>> list() override { co_return std::vector<FoundPartition>(); }
  Task<Opened> open(TopicPartition, LogOptions) override {
    co_return Opened{.log = std::make_unique<TestPartitionLog>(stored, environment_.clock())};
  }
  Task<> remove(TopicPartition) override { co_return {}; }
  Task<> checkpoint(CheckpointKind, std::vector<PartitionOffset>) override { co_return {}; }
  Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind) override {
    co_return std::vector<PartitionOffset>();
  }
  Task<> close() override { co_return {}; }

 private:
  Environment& environment_;
};

/// Compresses by putting a mark in front: small, and different for each codec.
class MarkCodec final : public Codec {
 public:
  explicit MarkCodec(CompressionId id) : id_(id) {}
  CompressionId id() const noexcept override { return id_; }
  Result<Buffer> compress(Bytes input) const override {
    MutableBuffer output(input.size() + 1);
    const auto mark = mark_byte();
    output.append({&mark, 1});
    output.append(input);
    return std::move(output).freeze();
  }
  Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const override {
    if (input.empty() || input[0] != mark_byte()) return Error{Errc::corrupt, "no mark"};
    if (input.size() - 1 > output_bytes_max) return Error{Errc::too_large, "too large"};
    return Buffer::copy_of(input.subspan(1));
  }

 private:
  std::byte mark_byte() const noexcept { return std::byte{0xc0} | static_cast<std::byte>(id_); }
  CompressionId id_;
};

}  // namespace millrace::kernel::testing
