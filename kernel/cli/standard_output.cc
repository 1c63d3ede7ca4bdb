#include "kernel/cli/standard_output.h"

#include <cerrno>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

#include "kernel/cli/terminal.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t pending_bytes_max = std::size_t{64} << 10;
constexpr std::chrono::milliseconds settle_max(500);

constinit StandardOutput* current = nullptr;

}  // namespace

void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free number is this one.
    const int held = ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR);
    if (held != descriptor && held >= 0) ::close(held);
  }
}

StandardOutput::StandardOutput(int descriptor)
    : descriptor_(descriptor), at_once_(::isatty(descriptor) == 1), before_(std::cout.rdbuf(this)) {
  current = this;
}

StandardOutput::~StandardOutput() {
  write(pending_.size());
  std::cout.rdbuf(before_);
  current = nullptr;
}

void StandardOutput::settle() {
  if (writing_.try_lock_for(settle_max)) writing_.unlock();
}

StandardOutput::int_type StandardOutput::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(0);
  const char c = traits_type::to_char_type(character);
  xsputn(&c, 1);
  return character;
}

std::streamsize StandardOutput::xsputn(const char* text, std::streamsize bytes) {
  const std::string_view added(text, static_cast<std::size_t>(bytes));
  if (at_once_) {
    add(printable(added));
  } else {
    add(added);
  }
  return bytes;
}

void StandardOutput::add(std::string_view text) {
  if (failure_ != 0) return;
  pending_ += text;
  if (pending_.size() >= pending_bytes_max || (at_once_ && text.contains('\n'))) write_lines();
}

int StandardOutput::sync() {
  write(pending_.size());
  return 0;
}

// A line that is too long to be kept goes in parts.
void StandardOutput::write_lines() {
  const auto end = pending_.rfind('\n');
  write(end == std::string::npos ? pending_.size() : end + 1);
}

void StandardOutput::write(std::size_t bytes) {
  const std::scoped_lock lock(writing_);
  std::string_view left = std::string_view(pending_).substr(0, bytes);
  while (!left.empty() && failure_ == 0) {
    const auto written = ::write(descriptor_, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      failure_ = errno;
    }
  }
  pending_.erase(0, bytes);
}

Result<> check_output() {
  if (current == nullptr || current->failure() == 0) return {};
  return Error{Errc::cancelled, "stdout takes nothing more"};
}

StandardOutput* standard_output() noexcept { return current; }

}  // namespace millrace::kernel::cli
