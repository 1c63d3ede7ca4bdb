// Reads of records that are not in memory. Nobody waits for the disk but threads that may; who
// reads on is read ahead of; and what old records take of the memory is bounded, so that new ones
// stay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <millrace/environment.h>

namespace millrace::filelog {

/// Bytes of a log file.
struct ColdRange {
  std::shared_ptr<File> file;
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;
};

/// How far one reader is read ahead of.  [any thread]
struct ColdProgress {
  std::atomic<bool> under_way = false;
  std::atomic<std::uint64_t> system_to = 0;  ///< the system may have read so far by itself
};

struct ColdLimits {
  /// An answer from the disk has no more, but for a batch that is larger: others wait for theirs.
  std::uint64_t answer_bytes_max = 4UL << 20;
  /// So far ahead of a reader.
  std::uint64_t ahead_bytes_max = 8UL << 20;
  /// Ahead of all readers together, on its way from the disk.
  std::uint64_t ahead_bytes_total_max = 64UL << 20;
  /// What was brought in and may stay, of all readers together; no less than two readers need.
  std::uint64_t kept_bytes_max = 256UL << 20;
  /// Threads of the pool that may wait for the disk at once; the others are there for what else it
  /// does.
  unsigned threads_max = 2;
};

/// The disk's readers of all logs, and what they have brought in.  [any thread]
class ColdReads {
 public:
  /// `pool` outlives the jobs; they may outlive this.
  ColdReads(BlockingPool& pool, ColdLimits limits);

  const ColdLimits& limits() const noexcept { return shared_->limits; }
  /// Whose jobs somebody waits for: they come before what is read ahead, in turn.
  BlockingPool& waited_for() noexcept { return waited_for_; }
  /// Brings the range in, piece by piece, in turn with what is read ahead of others; false when too
  /// much is on its way already. `progress` is not under way any more once it is done.
  bool read_ahead(ColdRange range, std::shared_ptr<ColdProgress> progress);
  /// The range was brought in: the oldest ones have to go where too much was.  [a worker]
  void keep(const ColdRange& range) { shared_->keep(range); }
  /// Kept now.
  std::uint64_t kept_bytes() const { return shared_->kept_bytes(); }
  /// keep() for jobs, which may outlive this.
  auto keeper() const {
    return [shared = shared_](const ColdRange& range) { shared->keep(range); };
  }

 private:
  struct Shared {
    Shared(BlockingPool& of, ColdLimits bounds) : pool(of), limits(bounds) {}
    void keep(const ColdRange& range);
    std::uint64_t kept_bytes() const;

    BlockingPool& pool;
    const ColdLimits limits;
    std::atomic<std::uint64_t> ahead_bytes = 0;

    mutable std::mutex mutex;  // guards what follows
    std::deque<Job> waited_for;
    std::deque<Job> ahead;
    unsigned threads = 0;
    struct Kept {
      std::weak_ptr<File> file;
      std::uint64_t position;
      std::uint64_t bytes;
    };
    std::deque<Kept> kept;  // oldest first
    std::uint64_t kept_total = 0;
  };
  class WaitedFor final : public BlockingPool {
   public:
    explicit WaitedFor(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    void submit(Job job) override;

   private:
    std::shared_ptr<Shared> shared_;
  };
  struct Ahead;

  static void submit(const std::shared_ptr<Shared>& shared, std::deque<Job>& line, Job job);
  static void run_next(const std::shared_ptr<Shared>& shared);
  static void bring_in_a_piece(const std::shared_ptr<Shared>& shared, Ahead ahead);

  std::shared_ptr<Shared> shared_;
  WaitedFor waited_for_;
};

/// Who reads old records of one log, by where each of them goes on.  [its shard]
class ColdReaders {
 public:
  /// A read of a range, of a file that ends at `file_end`. `cold`: not all of it was in memory. Has
  /// what follows it brought in where the reader goes on.
  void has_read(ColdReads& reads, const ColdRange& range, std::uint64_t file_end, bool cold);

 private:
  static constexpr std::size_t readers_max = 16;

  struct Reader {
    std::weak_ptr<File> file;
    std::uint64_t next = 0;      // where it goes on
    std::uint64_t ahead_to = 0;  // up to where it was read ahead of
    std::uint64_t window = 0;
    std::shared_ptr<ColdProgress> progress;
  };

  Reader* find(const ColdRange& range);
  static void look_ahead(ColdReads& reads, Reader& reader, const std::shared_ptr<File>& file,
                         std::uint64_t file_end);

  std::vector<Reader> readers_;  // who has read last is the last one
};

}  // namespace millrace::filelog
