#include <array>
#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include <millrace/cached_file.h>

#include "kernel/env/socket.h"
#include "kernel/env/system_error.h"

namespace millrace::kernel {

struct SocketStream::Socket {
  Socket(std::unique_ptr<Descriptor> connected, Address address, BlockingPool& pool)
      : descriptor(std::move(connected)), peer(std::move(address)), workers(pool) {}

  EnvironmentMetrics& metrics() const noexcept { return descriptor->loop().metrics(); }
  Error failed(const char* what, int number) const {
    return system_error(number, std::string(what) + " " + to_string(peer));
  }

  std::unique_ptr<Descriptor> descriptor;
  Address peer;
  BlockingPool& workers;
};

namespace {

using Socket = SocketStream::Socket;

constexpr std::size_t parts_per_call_max = 64;
constexpr std::size_t read_chunk_bytes = 256 << 10;
// What all streams of a loop together send of large parts in one of its rounds: whoever has little
// to send or to do goes on after at most so much, however many read much at once.
constexpr std::size_t bytes_per_round_max = 2 << 20;
constexpr std::size_t large_part_bytes = 64 << 10;

// What is in memory stays there for so long; later it is asked for again.
constexpr Duration memory_lasts = std::chrono::milliseconds(100);

Error closed_here() { return {Errc::closed, "the connection was closed here"}; }

// The parts of a payload that are not sent yet.
class Unsent {
 public:
  explicit Unsent(Payload payload) : parts_(std::move(payload).release()) {}

  bool empty() const { return next_ == parts_.size(); }
  const FileRange* file() const { return std::get_if<FileRange>(&parts_[next_]); }
  std::uint64_t file_position() const { return file()->offset + taken_; }
  std::uint64_t file_bytes() const { return file()->size - taken_; }

  // The buffers up to the next file range, as many as fit.
  std::size_t gather(std::span<iovec> into) const {
    std::size_t count = 0;
    for (auto at = next_; at < parts_.size() && count < into.size(); ++at, ++count) {
      const auto* buffer = std::get_if<Buffer>(&parts_[at]);
      if (!buffer) break;
      const auto skip = at == next_ ? taken_ : 0;
      into[count] = {const_cast<std::byte*>(buffer->data() + skip), buffer->size() - skip};
    }
    return count;
  }
  bool next_is_large() const { return size_of(parts_[next_]) - taken_ >= large_part_bytes; }
  bool more_than(std::size_t parts) const { return next_ + parts < parts_.size(); }

  void sent(std::size_t bytes) {
    while (bytes > 0) {
      const auto here = std::min<std::uint64_t>(bytes, size_of(parts_[next_]) - taken_);
      bytes -= here;
      taken_ += here;
      if (taken_ < size_of(parts_[next_])) return;
      parts_[next_++] = Buffer();  // lets go of it at once
      taken_ = 0;
    }
  }

 private:
  static std::uint64_t size_of(const Payload::Part& part) {
    const auto* buffer = std::get_if<Buffer>(&part);
    return buffer ? buffer->size() : std::get<FileRange>(part).size;
  }

  std::vector<Payload::Part> parts_;
  std::size_t next_ = 0;
  std::uint64_t taken_ = 0;  // bytes of parts_[next_]
};

// Each of these makes one call: bytes sent, 0 for "wait until writable", or an error.

Result<std::size_t> outcome_of(const Socket& socket, ssize_t sent, Counter& counter) {
  if (sent >= 0) {
    counter.add(static_cast<std::size_t>(sent));
    return static_cast<std::size_t>(sent);
  }
  if (errno == EAGAIN || errno == EINTR) return 0;
  return socket.failed("send to", errno);
}

Result<std::size_t> send_buffers(const Socket& socket, const Unsent& unsent) {
  std::array<iovec, parts_per_call_max> vectors;
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = unsent.gather(vectors);
  const int more = unsent.more_than(message.msg_iovlen) ? MSG_MORE : 0;
  const auto sent = ::sendmsg(socket.descriptor->number(), &message, MSG_NOSIGNAL | more);
  return outcome_of(socket, sent, socket.metrics().sent_from_memory_bytes);
}

Error file_ended(const Unsent& unsent) {
  return {Errc::corrupt, unsent.file()->file->path() + ": ends at or before byte " +
                             std::to_string(unsent.file_position()) + ", expected " +
                             std::to_string(unsent.file_bytes()) + " more to send"};
}

Result<std::size_t> send_file(const Socket& socket, const Unsent& unsent) {
  auto position = static_cast<off_t>(unsent.file_position());
  const auto bytes = std::min<std::uint64_t>(unsent.file_bytes(), bytes_per_round_max);
  const auto sent =
      ::sendfile(socket.descriptor->number(), unsent.file()->file->descriptor(), &position, bytes);
  if (sent == 0) return file_ended(unsent);
  return outcome_of(socket, sent, socket.metrics().sent_from_files_bytes);
}

// For files without a descriptor.
Result<Buffer> read_chunk(const Unsent& unsent) {
  MutableBuffer chunk(std::min<std::uint64_t>(unsent.file_bytes(), read_chunk_bytes));
  MR_TRY(const auto bytes, unsent.file()->file->read_at(unsent.file_position(), chunk.space()));
  if (bytes == 0) return file_ended(unsent);
  chunk.filled(bytes);
  return std::move(chunk).freeze();
}

bool needs_reading(const Unsent& unsent) {
  return unsent.file() && unsent.file()->file->descriptor() < 0;
}

enum class Stopped {
  nothing_left,  // but what has to be read first
  no_room,       // at the peer
  end_of_share,  // of the loop's round
};

Result<Stopped> send_parts(const Socket& socket, Unsent& unsent) {
  auto& loop = socket.descriptor->loop();
  while (!unsent.empty() && !needs_reading(unsent)) {
    if (socket.descriptor->closed()) return closed_here();
    if (loop.sent_in_round() >= bytes_per_round_max && unsent.next_is_large()) {
      return Stopped::end_of_share;
    }
    MR_TRY(const auto bytes,
           unsent.file() ? send_file(socket, unsent) : send_buffers(socket, unsent));
    if (bytes == 0) return Stopped::no_room;
    unsent.sent(bytes);
    if (bytes >= large_part_bytes) loop.count_sent(bytes);
  }
  return Stopped::nothing_left;
}

// What a call sends next is in memory, though its peer has kept it waiting for long.
Task<> bring_back(std::shared_ptr<Socket> socket, FileRange next) {
  next.size = std::min<std::uint64_t>(next.size, bytes_per_round_max);
  if (next.file->resident(next.offset, next.size)) co_return {};
  const auto* cached = CachedFile::of(*next.file);
  if (!cached) co_return {};
  auto work = [cached, next] { return cached->bring_in(next.offset, next.size); };
  auto brought = on_worker(socket->workers, std::move(work));
  // A file that is too short is told of when it is sent.
  (void)co_await std::move(brought);
  co_return {};
}

Task<> wait_for_room(std::shared_ptr<Socket> socket, const Unsent& unsent) {
  const auto& loop = socket->descriptor->loop();
  const auto since = loop.now();
  MR_CO_CHECK(co_await socket->descriptor->writable());
  if (!unsent.file() || loop.now() - since < memory_lasts) co_return {};
  FileRange next{unsent.file()->file, unsent.file_position(), unsent.file_bytes()};
  co_return co_await bring_back(std::move(socket), std::move(next));
}

Task<> wait_for_next_round(std::shared_ptr<Socket> socket) {
  auto [resolver, pending] = make_pending<>();
  socket->descriptor->loop().post([mine = std::move(resolver)]() mutable { mine.resolve(); });
  co_return co_await pending;
}

Task<> send_all(std::shared_ptr<Socket> socket, Payload payload) {
  Unsent unsent(std::move(payload));
  while (true) {
    MR_CO_TRY(const auto stopped, send_parts(*socket, unsent));
    if (stopped != Stopped::nothing_left) {
      auto waiting =
          stopped == Stopped::no_room ? wait_for_room(socket, unsent) : wait_for_next_round(socket);
      MR_CO_CHECK(co_await std::move(waiting));
      continue;
    }
    if (unsent.empty()) co_return {};
    MR_CO_TRY(auto chunk, read_chunk(unsent));
    const auto bytes = chunk.size();
    auto sending = send_all(socket, Payload(std::move(chunk)));
    MR_CO_CHECK(co_await std::move(sending));
    unsent.sent(bytes);
  }
}

// One receive for each wake-up: whether there is more is asked of the loop, for all sockets at
// once, and not by a call that may be in vain.
Task<std::size_t> receive_some(std::shared_ptr<Socket> socket, MutableBytes space) {
  MR_ASSERT(!space.empty());
  while (true) {
    if (socket->descriptor->closed()) co_return closed_here();
    MR_CO_CHECK(co_await socket->descriptor->readable());
    const auto bytes = ::recv(socket->descriptor->number(), space.data(), space.size(), 0);
    if (bytes >= 0) {
      const auto received = static_cast<std::size_t>(bytes);
      socket->metrics().received_bytes.add(received);
      co_return received;
    }
    if (errno != EAGAIN && errno != EINTR) co_return socket->failed("receive from", errno);
  }
}

// Answers leave at once: the layers above send what belongs together in one call.
void set_options(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

SocketStream::SocketStream(std::unique_ptr<Descriptor> connected, Address peer,
                           BlockingPool& workers)
    : socket_(std::make_shared<Socket>(std::move(connected), std::move(peer), workers)) {
  set_options(socket_->descriptor->number());
}

Task<std::size_t> SocketStream::receive(MutableBytes space) { return receive_some(socket_, space); }

Task<> SocketStream::send(Payload payload) { return send_all(socket_, std::move(payload)); }

void SocketStream::close() noexcept { socket_->descriptor->close(); }

const Address& SocketStream::peer() const noexcept { return socket_->peer; }

}  // namespace millrace::kernel
