#include "cold_reads.h"

#include <algorithm>
#include <utility>

#include <millrace/cached_file.h>
#include <millrace/filelog/entry.h>

namespace millrace::filelog {

namespace {

// Reading ahead takes its turn after so much: whom somebody waits for does not wait for more.
constexpr std::uint64_t piece_bytes = 1UL << 20;

constexpr std::uint64_t window_bytes_min = 64UL << 10;

// The system keeps what it reads ahead in pieces of this size at the most, and forgets them whole.
constexpr std::uint64_t system_piece_bytes = 2UL << 20;

// What one reader was just answered, and is read ahead of, is not forgotten for the next piece.
ColdLimits sensible(ColdLimits limits) {
  const auto of_a_reader = limits.ahead_bytes_max + limits.answer_bytes_max;
  limits.kept_bytes_max = std::max(limits.kept_bytes_max, 2 * of_a_reader);
  return limits;
}

}  // namespace

ColdReads::ColdReads(BlockingPool& pool, ColdLimits limits)
    : shared_(std::make_shared<Shared>(pool, sensible(limits))), waited_for_(shared_) {}

void ColdReads::WaitedFor::submit(Job job) {
  ColdReads::submit(shared_, shared_->waited_for, std::move(job));
}

void ColdReads::submit(const std::shared_ptr<Shared>& shared, std::deque<Job>& line, Job job) {
  {
    const std::lock_guard lock(shared->mutex);
    line.push_back(std::move(job));
    if (shared->threads >= shared->limits.threads_max) return;
    ++shared->threads;
  }
  shared->pool.submit([shared] { run_next(shared); });
}

// Each takes its turn with the pool's other jobs.
void ColdReads::run_next(const std::shared_ptr<Shared>& shared) {
  Job job;
  {
    const std::lock_guard lock(shared->mutex);
    auto& line = shared->waited_for.empty() ? shared->ahead : shared->waited_for;
    if (line.empty()) {
      --shared->threads;
      return;
    }
    job = std::move(line.front());
    line.pop_front();
  }
  job();
  job = {};  // what it held goes before the next one begins
  shared->pool.submit([shared] { run_next(shared); });
}

// ---- what is brought in ----

struct ColdReads::Ahead {
  ColdRange range;
  std::shared_ptr<ColdProgress> progress;
};

bool ColdReads::read_ahead(ColdRange range, std::shared_ptr<ColdProgress> progress) {
  const auto before = shared_->ahead_bytes.fetch_add(range.bytes);
  if (before > 0 && before + range.bytes > limits().ahead_bytes_total_max) {
    shared_->ahead_bytes -= range.bytes;
    return false;
  }
  progress->under_way = true;
  Ahead ahead{std::move(range), std::move(progress)};
  submit(shared_, shared_->ahead, [shared = shared_, ahead = std::move(ahead)]() mutable {
    bring_in_a_piece(shared, std::move(ahead));
  });
  return true;
}

// What cannot be read is said to who asks for it. What is there already is either not of our
// bringing, and left alone, or the system has read it by itself, and goes on when it is passed.
void ColdReads::bring_in_a_piece(const std::shared_ptr<Shared>& shared, Ahead ahead) {
  auto& range = ahead.range;
  const ColdRange piece{range.file, range.position, std::min(range.bytes, piece_bytes)};
  const auto end = piece.position + piece.bytes;
  bool come = true;
  if (piece.position < ahead.progress->system_to ||
      !piece.file->resident(piece.position, piece.bytes)) {
    const auto system_to = bring_in(*piece.file, piece.position, end);
    come = system_to.has_value();
    if (come) {
      if (*system_to > end) ahead.progress->system_to = *system_to;
      shared->keep(piece);
    }
  }
  range.position += piece.bytes;
  range.bytes -= piece.bytes;
  if (come && range.bytes > 0) {
    shared->ahead_bytes -= piece.bytes;
    submit(shared, shared->ahead, [shared, ahead = std::move(ahead)]() mutable {
      bring_in_a_piece(shared, std::move(ahead));
    });
    return;
  }
  shared->ahead_bytes -= piece.bytes + range.bytes;
  ahead.progress->under_way = false;
}

void ColdReads::Shared::keep(const ColdRange& range) {
  std::vector<Kept> gone;
  {
    const std::lock_guard lock(mutex);
    kept.push_back({range.file, range.position, range.bytes});
    kept_total += range.bytes;
    while (kept_total > limits.kept_bytes_max && kept.size() > 1) {
      kept_total -= kept.front().bytes;
      gone.push_back(std::move(kept.front()));
      kept.pop_front();
    }
  }
  for (const auto& old : gone) {
    const auto file = old.file.lock();
    const auto* cached = file ? CachedFile::of(*file) : nullptr;
    if (!cached) continue;
    const auto before = std::min(old.position, system_piece_bytes);
    cached->forget(old.position - before, old.bytes + before);
  }
}

std::uint64_t ColdReads::Shared::kept_bytes() const {
  const std::lock_guard lock(mutex);
  return kept_total;
}

// ---- who reads on ----

ColdReaders::Reader* ColdReaders::find(const ColdRange& range) {
  for (auto at = readers_.begin(); at != readers_.end(); ++at) {
    if (at->next != range.position || at->file.lock() != range.file) continue;
    std::rotate(at, at + 1, readers_.end());
    return &readers_.back();
  }
  return nullptr;
}

void ColdReaders::has_read(ColdReads& reads, const ColdRange& range, std::uint64_t file_end,
                           bool cold) {
  if (range.bytes == 0 || (readers_.empty() && !cold)) return;
  const auto end = range.position + range.bytes;
  auto* reader = find(range);
  if (!reader) {
    if (!cold) return;
    if (readers_.size() == readers_max) readers_.erase(readers_.begin());
    reader = &readers_.emplace_back();
    reader->file = range.file;
    reader->window = std::max(range.bytes, window_bytes_min);
    reader->progress = std::make_shared<ColdProgress>();
  }
  reader->next = end;
  reader->ahead_to = std::max(reader->ahead_to, end);
  look_ahead(reads, *reader, range.file, file_end);
}

// Twice as far each time, since a reader that goes on will go on; and not before half of it is
// read, so that the disk is asked for much at once.
void ColdReaders::look_ahead(ColdReads& reads, Reader& reader, const std::shared_ptr<File>& file,
                             std::uint64_t file_end) {
  if (reader.progress->under_way || reader.ahead_to - reader.next > reader.window / 2) return;
  reader.window = std::min(reader.window * 2, reads.limits().ahead_bytes_max);
  const auto to = std::min(reader.next + reader.window, file_end);
  if (to <= reader.ahead_to) return;
  if (reads.read_ahead({file, reader.ahead_to, to - reader.ahead_to}, reader.progress)) {
    reader.ahead_to = to;
  }
}

}  // namespace millrace::filelog
