// What the system keeps of an open file in memory, beyond what File tells.
#pragma once

#include <cstdint>

#include <millrace/environment.h>

namespace millrace {

/// A file that can have its bytes brought into memory, and forgotten there. The real environment's
/// are; where a file is none, reading it is all that can be done.  [any thread]
class CachedFile {
 public:
  static const CachedFile* of(const File& file) noexcept {
    return dynamic_cast<const CachedFile*>(&file);
  }

  /// Returns once the range is in memory, having copied nothing; no more than the range is read,
  /// now and later. Errc::out_of_range when the file ends before it does.  [a worker]
  virtual Result<> bring_in(std::uint64_t position, std::uint64_t bytes) const = 0;
  /// The range need not stay in memory. What is not on the disk yet does.  [a worker]
  virtual void forget(std::uint64_t position, std::uint64_t bytes) const noexcept = 0;

 protected:
  ~CachedFile() = default;
};

/// A CachedFile of which the system reads ahead by itself, in large pieces: that takes a tenth of
/// the processor's time.  [any thread]
class ReadAheadFile {
 public:
  static const ReadAheadFile* of(const File& file) noexcept {
    return dynamic_cast<const ReadAheadFile*>(&file);
  }

  /// CachedFile::bring_in() for who has read up to here and goes on. Answers to where the system
  /// may have read: the range's end where all of it was there.  [a worker]
  virtual Result<std::uint64_t> read_on(std::uint64_t position, std::uint64_t bytes) const = 0;

 protected:
  ~ReadAheadFile() = default;
};

}  // namespace millrace
