#include "kernel/log/line_writer.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <exception>
#include <utility>

namespace millrace::kernel {

namespace {

constexpr auto last_words_max = std::chrono::seconds(1);
/// How often a writer whose reader stalls looks whether it should end.
constexpr int stalled_check_ms = 50;

/// Whole lines as far as PIPE_BUF goes: more could block although the descriptor is writable, and
/// could be mixed with what other processes write.
std::string_view first_piece(std::string_view text) {
  if (text.size() <= PIPE_BUF) return text;
  const auto end = text.rfind('\n', PIPE_BUF - 1);
  return text.substr(0, end == std::string_view::npos ? PIPE_BUF : end + 1);
}

}  // namespace

std::string with_entry(std::string_view entry, std::string_view line) {
  std::string framed;
  for (const auto part : {entry, line}) {
    const std::size_t bytes = part.size();
    framed.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    framed += part;
  }
  return framed;
}

LineWriter::LineWriter(int descriptor, std::size_t bytes_max, TellDropped tell_dropped,
                       std::unique_ptr<JournalSocket> journal)
    : descriptor_(descriptor),
      bytes_max_(bytes_max),
      tell_dropped_(std::move(tell_dropped)),
      journal_(std::move(journal)) {}

LineWriter::~LineWriter() {
  {
    const std::lock_guard lock(mutex_);
    give_up_at_ = std::chrono::steady_clock::now() + last_words_max;
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LineWriter::push(std::string_view line) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (lines_.size() + line.size() > bytes_max_) {
      ++dropped_;
      return;
    }
    lines_ += line;
    idle_ = false;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::exception&) {  // no memory or no thread, and nobody left to tell
    return;
  }
  changed_.notify_one();
}

void LineWriter::run() {
  pthread_setname_np(pthread_self(), "mr-log");
  sigset_t signals;  // they are for others
  sigfillset(&signals);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !lines_.empty(); });
    if (lines_.empty()) return;
    auto text = std::exchange(lines_, {});
    const auto dropped = std::exchange(dropped_, 0);
    lock.unlock();
    hand_over(text);
    if (dropped > 0) hand_over(tell_dropped_(dropped));
    lock.lock();
    idle_ = lines_.empty();
  }
}

void LineWriter::hand_over(std::string_view text) {
  if (!journal_) return write_out(text);
  const auto take_part = [&text] {
    std::size_t bytes = 0;
    std::memcpy(&bytes, text.data(), sizeof bytes);
    const auto part = text.substr(sizeof bytes, bytes);
    text.remove_prefix(sizeof bytes + bytes);
    return part;
  };
  while (!text.empty()) {
    const auto entry = take_part();
    const auto line = take_part();
    if (!send_entry(entry)) write_out(line);
  }
}

bool LineWriter::send_entry(std::string_view entry) {
  while (true) {
    const auto sent = journal_->send(entry);
    if (sent != JournalSocket::Sent::full) return sent == JournalSocket::Sent::done;
    // At an end that comes too early nothing is left to be tried.
    if (!wait_until_writable(journal_->descriptor())) return true;
  }
}

void LineWriter::write_out(std::string_view text) {
  while (!text.empty() && wait_until_writable(descriptor_)) {
    const auto piece = first_piece(text);
    const auto written = ::write(descriptor_, piece.data(), piece.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
      return;  // closed, or a full disk
    }
  }
}

bool LineWriter::wait_until_writable(int descriptor) {
  pollfd waiting{.fd = descriptor, .events = POLLOUT, .revents = 0};
  while (::poll(&waiting, 1, stalled_check_ms) == 0) {
    if (stopping_ && std::chrono::steady_clock::now() > give_up_at_) return false;
  }
  return true;
}

}  // namespace millrace::kernel
