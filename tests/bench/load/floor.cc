// bench-floor --folder DIR --megabytes N
//
// What three replicas of a byte cost at least: a leader that has it in memory checks it by one crc,
// appends it to its file and hands it from there to two followers by sendfile; they append it to
// theirs. No requests, no batches, no answers: the leader and each follower are one loop. Prints
// what all three used, as one JSON line.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include <CLI/CLI.hpp>

#include <millrace/bytes.h>

#include "load.h"

namespace millrace::bench {
namespace {

constexpr std::size_t batch_bytes = 1'000'000;  // as the batches of bench-load
constexpr std::size_t followers = 2;

[[noreturn]] void fail(const std::string& what) {
  throw LoadFailed(what + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {
    if (number < 0) fail("a descriptor");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(number_); }
  int get() const { return number_; }

 private:
  int number_;
};

/// A file without a name: it goes with its descriptor.
int open_file(const std::filesystem::path& folder) {
  return open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

struct Hop {
  explicit Hop(int listener) : from(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    if (connect(from.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      fail("connect");
    }
  }
  Descriptor from;
};

void append(int file, const char* bytes, std::size_t count) {
  while (count > 0) {
    const auto written = write(file, bytes, count);
    if (written < 0) fail("write");
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
}

void follow(int socket, int file) {
  std::vector<char> buffer(batch_bytes);
  for (;;) {
    const auto received = recv(socket, buffer.data(), buffer.size(), 0);
    if (received < 0) fail("receive");
    if (received == 0) return;
    append(file, buffer.data(), static_cast<std::size_t>(received));
  }
}

void hand_on(int file, off_t from, std::size_t count, int socket) {
  while (count > 0) {
    const auto sent = sendfile(socket, file, &from, count);
    if (sent <= 0) fail("sendfile");
    count -= static_cast<std::size_t>(sent);
  }
}

void run(const std::filesystem::path& folder, std::size_t batches) {
  const Descriptor listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) != 0 ||
      listen(listener.get(), followers) != 0) {
    fail("listen");
  }
  const Hop first(listener.get());
  const Descriptor first_end(accept(listener.get(), nullptr, nullptr));
  const Hop second(listener.get());
  const Descriptor second_end(accept(listener.get(), nullptr, nullptr));
  const Descriptor log(open_file(folder));
  const Descriptor first_log(open_file(folder));
  const Descriptor second_log(open_file(folder));
  const auto text = make_text(16 * batch_bytes);

  const auto started = Clock::now();
  const auto used = cpu_seconds();
  std::uint32_t crc = 0;
  {
    const std::jthread one([&] { follow(first_end.get(), first_log.get()); });
    const std::jthread other([&] { follow(second_end.get(), second_log.get()); });
    for (std::size_t at = 0; at < batches; ++at) {
      const std::string_view batch(text.data() + at % 16 * batch_bytes, batch_bytes);
      crc ^= crc32c(std::as_bytes(std::span(batch)));
      append(log.get(), batch.data(), batch.size());
      const auto from = static_cast<off_t>(at * batch_bytes);
      hand_on(log.get(), from, batch_bytes, first.from.get());
      hand_on(log.get(), from, batch_bytes, second.from.get());
    }
    shutdown(first.from.get(), SHUT_WR);
    shutdown(second.from.get(), SHUT_WR);
  }
  const std::chrono::duration<double> taken = Clock::now() - started;
  std::printf(R"({"bytes": %zu, "seconds": %.4f, "cpu_seconds": %.3f, "crc": %u})"
              "\n",
              batches * batch_bytes, taken.count(), cpu_seconds() - used, crc);
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  CLI::App app("What three replicas cost at least.");
  std::string folder;
  std::size_t megabytes = 600;
  app.add_option("--folder", folder, "on the disk that the logs would be on")->required();
  app.add_option("--megabytes", megabytes)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    millrace::bench::run(folder, megabytes * 1'000'000 / millrace::bench::batch_bytes);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench-floor: %s\n", failure.what());
    return 1;
  }
}
