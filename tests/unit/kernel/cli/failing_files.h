// A file system that dies in front of its nth change, as a process that is killed does: what was
// changed before stays, of what comes nothing happens.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/environment.h>

namespace millrace::kernel::cli {

class FailingFiles final : public FileSystem {
 public:
  explicit FailingFiles(FileSystem& files) : files_(files) {}

  void fail_after(int changes) { left_ = changes; }

  Result<std::shared_ptr<File>> open(const std::string& path, OpenMode mode) override {
    if (mode == OpenMode::create) MR_CHECK(change());
    MR_TRY(auto file, files_.open(path, mode));
    return std::make_shared<FailingFile>(*this, std::move(file));
  }
  Result<FileInfo> info(const std::string& path) override { return files_.info(path); }
  Result<std::vector<FileInfo>> list(const std::string& folder) override {
    return files_.list(folder);
  }
  Result<> make_folders(const std::string& path) override {
    MR_CHECK(change());
    return files_.make_folders(path);
  }
  Result<> rename(const std::string& from, const std::string& to) override {
    MR_CHECK(change());
    return files_.rename(from, to);
  }
  Result<> remove(const std::string& path) override {
    MR_CHECK(change());
    return files_.remove(path);
  }
  Result<> remove_tree(const std::string& path) override {
    MR_CHECK(change());
    return files_.remove_tree(path);
  }
  Result<> sync_folder(const std::string& folder) override { return files_.sync_folder(folder); }
  Result<std::unique_ptr<Lock>> lock(const std::string& path) override { return files_.lock(path); }
  Result<SpaceInfo> space(const std::string& path) override { return files_.space(path); }
  Result<> sync_all(const std::string& folder) override { return files_.sync_all(folder); }

 private:
  class FailingFile final : public File {
   public:
    FailingFile(FailingFiles& owner, std::shared_ptr<File> file)
        : owner_(owner), file_(std::move(file)) {}
    Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
      return file_->read_at(position, into);
    }
    Result<> write_at(std::uint64_t position, std::span<const Bytes> parts) override {
      MR_CHECK(owner_.change());
      return file_->write_at(position, parts);
    }
    Result<> truncate(std::uint64_t size) override {
      MR_CHECK(owner_.change());
      return file_->truncate(size);
    }
    Result<> sync() override { return file_->sync(); }
    Result<std::uint64_t> size() const override { return file_->size(); }
    bool resident(std::uint64_t position, std::uint64_t bytes) const noexcept override {
      return file_->resident(position, bytes);
    }
    const std::string& path() const noexcept override { return file_->path(); }

   private:
    FailingFiles& owner_;
    std::shared_ptr<File> file_;
  };

  Result<> change() {
    if (left_ == 0) return Error{Errc::io, "killed"};
    --left_;
    return {};
  }

  FileSystem& files_;
  int left_ = std::numeric_limits<int>::max();
};

}  // namespace millrace::kernel::cli
