// Takes std::cout over, so that what could not be written is known, and a line is never cut.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>

#include <millrace/result.h>

namespace millrace::kernel::cli {

/// Opens /dev/null in place of standard descriptors that are closed, or the first socket would get
/// what is printed. Writing to it fails as to a closed one.  [start-up]
void hold_standard_descriptors();

/// What std::cout writes into: whole lines of stdout; on a terminal each at once, and what comes by
/// std::cout as printable() has it: what messages and names hold is no command for it.
/// One thread writes at a time.
class StandardOutput final : public std::streambuf {
 public:
  /// From then on std::cout writes into it, until it is destroyed.
  explicit StandardOutput(int descriptor);
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  /// errno of the first write that failed; what came later is dropped. 0: all is well.
  int failure() const noexcept { return failure_; }
  bool is_terminal() const noexcept { return at_once_; }
  /// Text that a terminal gets as it is: whoever gives it knows what is in it.
  void add(std::string_view text);
  /// Waits for a write that is under way, for a moment: whoever ends the process then cuts no line.
  /// [any thread]
  void settle();

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize bytes) override;
  int sync() override;

 private:
  void write_lines();
  void write(std::size_t bytes);

  int descriptor_;
  bool at_once_;
  std::streambuf* before_;
  std::string pending_;
  int failure_ = 0;
  std::timed_mutex writing_;
};

/// Fails with Errc::cancelled once stdout takes nothing more: who prints without end goes on for
/// nobody. Why is main()'s to say.
Result<> check_output();
/// The one there is, or nullptr.
StandardOutput* standard_output() noexcept;

}  // namespace millrace::kernel::cli
