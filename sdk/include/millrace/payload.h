// What is sent: buffers and ranges of files, in order. A stream sends the ranges with sendfile, so
// bytes at rest on disk reach the network without passing through the process.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include <millrace/buffer.h>

namespace millrace {

class File;  // environment.h

/// Bytes of an open file. Holding one keeps the file readable, also after its name is removed;
/// the bytes of a range never change (logs only grow, and a rewrite makes a new file).
struct FileRange {
  std::shared_ptr<const File> file;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// A sequence of buffers and file ranges, sent by giving it away.  [one thread at a time]
class Payload {
 public:
  using Part = std::variant<Buffer, FileRange>;

  Payload() = default;
  Payload(Buffer buffer) { add(std::move(buffer)); }

  void add(Buffer buffer) {
    if (buffer.empty()) return;
    size_ += buffer.size();
    parts_.emplace_back(std::move(buffer));
  }
  void add(FileRange range) {
    if (range.size == 0) return;
    size_ += range.size;
    parts_.emplace_back(std::move(range));
  }
  void add(Payload other) {
    for (auto& part : other.parts_) parts_.push_back(std::move(part));
    size_ += std::exchange(other.size_, 0);
    other.parts_.clear();
  }

  std::uint64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const std::vector<Part>& parts() const noexcept { return parts_; }
  std::vector<Part> release() && {
    size_ = 0;
    return std::move(parts_);
  }

  /// One buffer with all bytes. Copies unless this is a single buffer, and reads files, so it may
  /// block: for workers, tools and tests, not for the data path.
  Result<Buffer> flatten() const;

 private:
  std::vector<Part> parts_;
  std::uint64_t size_ = 0;
};

}  // namespace millrace
