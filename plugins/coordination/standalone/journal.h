// The file behind the tree. Its form and what a damaged one means are in README.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <millrace/environment.h>

#include "tree.h"

namespace millrace::standalone {

/// Calls block on the disk.  [one worker at a time]
class Journal {
 public:
  /// Reads the file, or makes it; `each` gets the changes of every entry, in order.
  struct Opened {
    std::unique_ptr<Journal> journal;
    std::uint64_t bytes_cut = 0;  ///< a torn tail that was removed
    bool seal_damaged = false;
  };
  static Result<Opened> open(FileSystem& files, std::string path,
                             const std::function<void(std::vector<Change>)>& each);

  /// Durable when it returns. An error leaves the file as it was; when that cannot be had either,
  /// the journal takes nothing more.
  Result<> append(const std::vector<Change>& changes);
  /// Replaces the file by one entry.
  Result<> rewrite(const std::vector<Change>& all);

  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  Journal(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  void seal();

  FileSystem& files_;
  std::string path_;
  std::shared_ptr<File> file_;
  std::uint64_t bytes_ = 0;
  bool broken_ = false;
};

}  // namespace millrace::standalone
