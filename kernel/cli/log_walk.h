// What stands in a log file, sound or not. A storage stops at the first damage; this goes on behind
// it, so that what is lost is told from what is there.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <millrace/batch.h>
#include <millrace/environment.h>
#include <millrace/filelog/entry.h>

namespace millrace::kernel::cli {

/// A batch, or a message of format V0 or V1, whose checksum is right and whose offsets follow what
/// is before it.
struct SoundBatch {
  filelog::Entry entry;
  std::optional<BatchHeader> header;  ///< of format V2 alone
};

/// A sound batch among bytes that are none, because it stands behind newer ones: its offsets are
/// missing in front of the batch at `hole`.
struct DisplacedBatch {
  std::uint64_t position = 0;
  std::uint64_t hole = 0;
  Offset from;
  Offset to;
  bool fills = false;  ///< with those before it, it is all that is missing there
};

/// Bytes between two sound batches, or behind the last one, that are none.
struct BadRegion {
  std::uint64_t position = 0;
  std::uint64_t end = 0;
  /// The offsets that are due there. `to` is none where nothing tells it: behind the last sound
  /// batch; and from - 1 where no offset is missing.
  Offset from;
  Offset to;
  Epoch epoch;  ///< of what is before it in the segment
  bool to_file_end = false;
  bool torn = false;   ///< to the file's end, within a batch or in zeros: the trace of a crash
  bool zeros = false;  ///< of zeros alone
  std::string what;
  std::vector<DisplacedBatch> displaced{};

  std::uint64_t bytes() const noexcept { return end - position; }
};

/// Walks one segment.  [any thread; blocks on the disk]
class SegmentWalker {
 public:
  using Item = std::variant<SoundBatch, BadRegion>;

  /// `next` is where the next segment begins; none for the last one. Of `file` the first `bytes`
  /// are looked at.
  SegmentWalker(const File& file, std::uint64_t bytes, Offset base, Offset next);

  /// In the order of positions; none at the end.
  Result<std::optional<Item>> next();

 private:
  struct Judged {
    std::optional<SoundBatch> sound;
    bool torn = false;
    std::string what;                    ///< why it is not sound
    std::optional<filelog::Entry> head;  ///< its head could be read all the same
    bool previous = false;               ///< it is the one before that has wrong numbers
  };
  /// What the order of batches is judged by.
  struct Hole {
    std::uint64_t position = 0;  // of the batch behind it
    Offset from;
    Offset to;
    std::int64_t missing = 0;
  };
  struct Due {
    Offset offset;
    Epoch epoch;
  };

  Result<Judged> judge(std::uint64_t position);
  Result<> take_next();
  Result<> skip_bad(Judged judged);
  std::optional<std::string> wrong_order(const SoundBatch& batch, const Due& due) const;
  bool blames_previous(const SoundBatch& batch) const;
  void accept(SoundBatch batch, bool behind_region = false);
  void release_held();
  Result<> find_displaced(BadRegion& region);
  Result<std::optional<SoundBatch>> sound_at(std::uint64_t position);
  Result<std::optional<SoundBatch>> find_sound(std::uint64_t from);
  bool may_begin(Bytes head, std::uint64_t position) const;

  const File& file_;
  const std::uint64_t bytes_;
  const Offset base_;
  const Offset next_;
  std::uint64_t position_ = 0;
  Due due_;
  Due due_before_held_;
  std::vector<Hole> holes_;                      // between sound batches; the last ones there are
  std::optional<SoundBatch> held_;               // the one before, until what follows it agrees
  std::optional<BadRegion> region_before_held_;  // which it ends
  std::deque<Item> ready_;
};

}  // namespace millrace::kernel::cli
