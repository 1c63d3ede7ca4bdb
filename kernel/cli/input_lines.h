// What is sent: stdin or a file, cut where a separator stands.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <millrace/result.h>

namespace millrace::kernel::cli {

/// Reads in the thread that asks, which waits for what comes.
class InputLines {
 public:
  /// "-": stdin. An empty separator: the whole is one.
  static Result<InputLines> open(const std::string& file, std::string separator);
  ~InputLines();
  InputLines(InputLines&& other) noexcept;
  InputLines& operator=(InputLines&&) = delete;

  /// Whether next() would have an answer by then: a line, or the end.
  bool is_ready(std::chrono::milliseconds within);
  /// Without its separator, which the last one need not have; nothing at the end.
  Result<std::optional<std::string>> next();

  std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  /// Of a file; nothing where it is not known.
  std::optional<std::uint64_t> bytes_total() const noexcept { return bytes_total_; }

 private:
  InputLines(int descriptor, std::string name, std::string separator);

  /// Whether `pending_` has a whole line; its end is at `end_`.
  bool find_end();
  Result<> read_more();

  int descriptor_;
  std::string name_;
  std::string separator_;
  std::string pending_;
  std::size_t begin_ = 0;     ///< of the line, in `pending_`
  std::size_t searched_ = 0;  ///< no separator begins before that
  std::size_t end_ = 0;
  bool at_end_ = false;
  std::uint64_t bytes_read_ = 0;
  std::optional<std::uint64_t> bytes_total_;
};

}  // namespace millrace::kernel::cli
