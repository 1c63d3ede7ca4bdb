// Files by the system's calls.
#pragma once

#include <atomic>
#include <string>

#include <millrace/cached_file.h>
#include <millrace/environment.h>

namespace millrace::kernel {

/// Every error names the file, the position and the system's reason. After a failed write what lies
/// behind `position` is unknown: the caller cuts the file there before it goes on.
class PosixFile final : public File, public CachedFile, public ReadAheadFile {
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
  /// Asks the system how much of the range it has in memory; where it cannot say (Linux before 6.5,
  /// or it is not permitted), a few pages are looked at. Pages that are still on their way from the
  /// disk count as had, so of a file that ever was not all there each page is looked at.
  bool resident(std::uint64_t position, std::uint64_t bytes) const noexcept override;
  Result<> bring_in(std::uint64_t position, std::uint64_t bytes) const override;
  void forget(std::uint64_t position, std::uint64_t bytes) const noexcept override;
  /// By a description of the file of its own, since how the system reads ahead goes by description:
  /// on what the shards use it does not.
  Result<std::uint64_t> read_on(std::uint64_t position, std::uint64_t bytes) const override;
  const std::string& path() const noexcept override { return path_; }
  int descriptor() const noexcept override { return descriptor_; }

 private:
  void turn_cold() const noexcept;
  void ask_for(std::uint64_t position, std::uint64_t bytes) const noexcept;
  Result<> pass(int descriptor, std::uint64_t position, std::uint64_t bytes) const;
  int reader() const noexcept;

  const int descriptor_;
  const std::string path_;
  mutable std::atomic<bool> was_cold_ = false;      // some of it was not in memory
  mutable std::atomic<int> reader_ = -1;            // what read_on() uses, once it was called
  mutable std::atomic<std::uint64_t> read_to_ = 0;  // by read_on()
};

}  // namespace millrace::kernel
