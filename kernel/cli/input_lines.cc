#include "kernel/cli/input_lines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <millrace/utf8.h>

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t read_bytes = std::size_t{256} << 10;
// Far beyond what a broker takes.
constexpr std::size_t line_bytes_max = std::size_t{1} << 30;

Error failure(const std::string& name) {
  return {Errc::not_found, shown(name) + ": " + std::strerror(errno)};
}

}  // namespace

Result<InputLines> InputLines::open(const std::string& file, std::string separator) {
  if (file == "-") return InputLines(STDIN_FILENO, "stdin", std::move(separator));
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return failure(file);
  return InputLines(descriptor, file, std::move(separator));
}

InputLines::InputLines(int descriptor, std::string name, std::string separator)
    : descriptor_(descriptor), name_(std::move(name)), separator_(std::move(separator)) {
  struct stat facts{};
  if (::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode)) {
    bytes_total_ = static_cast<std::uint64_t>(facts.st_size);
  }
}

InputLines::InputLines(InputLines&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      separator_(std::move(other.separator_)),
      pending_(std::move(other.pending_)),
      begin_(other.begin_),
      searched_(other.searched_),
      end_(other.end_),
      at_end_(other.at_end_),
      bytes_read_(other.bytes_read_),
      bytes_total_(other.bytes_total_) {}

InputLines::~InputLines() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
}

bool InputLines::find_end() {
  if (separator_.empty()) return false;
  end_ = pending_.find(separator_, std::max(begin_, searched_));
  if (end_ != std::string::npos) return true;
  const auto kept = separator_.size() - 1;
  searched_ = pending_.size() > kept ? pending_.size() - kept : 0;
  return false;
}

bool InputLines::is_ready(std::chrono::milliseconds within) {
  if (at_end_ || find_end()) return true;
  pollfd waited{descriptor_, POLLIN, 0};
  return ::poll(&waited, 1, static_cast<int>(within.count())) > 0;
}

Result<> InputLines::read_more() {
  pending_.erase(0, begin_);
  searched_ -= std::min(searched_, begin_);
  begin_ = 0;
  const auto before = pending_.size();
  if (before > line_bytes_max) {
    return Error{Errc::invalid_argument, shown(name_) + ": a message of more than 1 GiB"};
  }
  pending_.resize(before + read_bytes);
  ssize_t bytes = 0;
  do {
    pollfd waited{descriptor_, POLLIN, 0};  // for one that does not wait by itself
    ::poll(&waited, 1, -1);
    bytes = ::read(descriptor_, pending_.data() + before, read_bytes);
  } while (bytes < 0 && (errno == EINTR || errno == EAGAIN));
  pending_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  if (bytes < 0) return failure(name_);
  if (bytes == 0) at_end_ = true;
  bytes_read_ += static_cast<std::uint64_t>(bytes);
  return {};
}

Result<std::optional<std::string>> InputLines::next() {
  while (!find_end() && !at_end_) MR_CHECK(read_more());
  const bool whole = !separator_.empty() && end_ != std::string::npos;
  if (whole) {
    auto line = pending_.substr(begin_, end_ - begin_);
    begin_ = searched_ = end_ + separator_.size();
    return std::optional(std::move(line));
  }
  if (begin_ == pending_.size()) return std::optional<std::string>();
  auto rest = pending_.substr(begin_);
  begin_ = searched_ = pending_.size();
  return std::optional(std::move(rest));
}

}  // namespace millrace::kernel::cli
