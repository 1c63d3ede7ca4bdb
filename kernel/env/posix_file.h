// Files by the system's calls.
#pragma once

#include <atomic>
#include <string>

#include <millrace/cached_file.h>
#include <millrace/environment.h>

namespace millrace::kernel {

/// Every error names the file, the position and the system's reason. After a failed write what lies
/// behind `position` is unknown: the caller cuts the file there before it goes on.
class PosixFile final : public File, public CachedFile {
 public:
  PosixFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~PosixFile() override;
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override;
  Result<> write_at(std::uint64_t position, std::span<const Bytes> parts) override;
  Result<> truncate(std::uint64_t size) override;
  /// fdatasync(2). After an error the system may have dropped what was not written.
  Result<> sync() override;
  Result<std::uint64_t> size() const override;
  /// Asks the system how much of the range it has in memory. Pages that are still on their way from
  /// the disk count as had, so of a file that ever was not all there, and where the system cannot
  /// say (Linux before 6.5), a byte at each end and at distances between is probed.
  bool resident(std::uint64_t position, std::uint64_t bytes) const noexcept override;
  Result<> bring_in(std::uint64_t position, std::uint64_t bytes) const override;
  void forget(std::uint64_t position, std::uint64_t bytes) const noexcept override;
  const std::string& path() const noexcept override { return path_; }
  int descriptor() const noexcept override { return descriptor_; }

 private:
  bool byte_is_resident(std::uint64_t position) const noexcept;
  bool probe(std::uint64_t position, std::uint64_t last) const noexcept;
  void read_no_further() const noexcept;

  const int descriptor_;
  const std::string path_;
  mutable std::atomic<bool> was_cold_ = false;  // some of it was not in memory
};

}  // namespace millrace::kernel
