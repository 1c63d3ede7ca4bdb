// bench-append --folder DIR [--megabytes N] [--repetitions N]
//
// What it takes to append to a file through the page cache, by each way that the kernel has: sizes
// of a write, room made before, alignment, a mapping, io_uring. Prints the median CPU seconds per
// GB of each, the ways in turn within a repetition.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "load.h"

namespace millrace::bench {
namespace {

constexpr std::size_t header_bytes = 61;

void need(bool fine, const char* what) {
  if (!fine) throw LoadFailed(std::string(what) + ": " + std::strerror(errno));
}

/// One request at a time through io_uring, as a shard that appends at once would have it.
class Ring {
 public:
  Ring(int file, std::span<iovec> to_register) {
    io_uring_params params{};
    descriptor_ = static_cast<int>(syscall(SYS_io_uring_setup, 4, &params));
    need(descriptor_ >= 0, "io_uring_setup");
    const auto submission_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    const auto completion_bytes = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
    auto* submission = map(submission_bytes, IORING_OFF_SQ_RING);
    auto* completion = map(completion_bytes, IORING_OFF_CQ_RING);
    entries_ = reinterpret_cast<io_uring_sqe*>(
        map(params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
    tail_ = number(submission + params.sq_off.tail);
    mask_ = *number(submission + params.sq_off.ring_mask);
    array_ = number(submission + params.sq_off.array);
    head_ = number(completion + params.cq_off.head);
    completion_mask_ = *number(completion + params.cq_off.ring_mask);
    completions_ = reinterpret_cast<io_uring_cqe*>(completion + params.cq_off.cqes);
    need(syscall(SYS_io_uring_register, descriptor_, IORING_REGISTER_FILES, &file, 1) == 0,
         "register the file");
    if (to_register.empty()) return;
    need(syscall(SYS_io_uring_register, descriptor_, IORING_REGISTER_BUFFERS, to_register.data(),
                 to_register.size()) == 0,
         "register buffers");
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { close(descriptor_); }

  void write(const std::function<void(io_uring_sqe&)>& fill, std::size_t bytes) {
    const unsigned at = *tail_ & mask_;
    auto& entry = entries_[at];
    entry = {};
    entry.flags = IOSQE_FIXED_FILE;
    fill(entry);
    array_[at] = at;
    std::atomic_ref(*tail_).store(*tail_ + 1, std::memory_order_release);
    need(syscall(SYS_io_uring_enter, descriptor_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) == 1,
         "io_uring_enter");
    const auto result = completions_[*head_ & completion_mask_].res;
    std::atomic_ref(*head_).store(*head_ + 1, std::memory_order_release);
    need(result == static_cast<int>(bytes), "a write through io_uring");
  }

 private:
  std::byte* map(std::size_t bytes, off_t at) const {
    auto* mapped =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, at);
    need(mapped != MAP_FAILED, "map a ring");
    return static_cast<std::byte*>(mapped);
  }
  static unsigned* number(std::byte* at) { return reinterpret_cast<unsigned*>(at); }

  int descriptor_ = -1;
  io_uring_sqe* entries_ = nullptr;
  io_uring_cqe* completions_ = nullptr;
  unsigned* tail_ = nullptr;
  unsigned* array_ = nullptr;
  unsigned* head_ = nullptr;
  unsigned mask_ = 0;
  unsigned completion_mask_ = 0;
};

struct Job {
  int file;
  std::size_t total;  ///< bytes, about
  std::size_t each;   ///< bytes of a write, header and body
  std::vector<char>& body;
};

void by_pwritev(const Job& job) {
  std::array<char, header_bytes> header{};
  for (std::size_t at = 0; at + job.each <= job.total; at += job.each) {
    const std::array<iovec, 2> parts{
        {{header.data(), header.size()}, {job.body.data(), job.each - header.size()}}};
    need(pwritev(job.file, parts.data(), 2, static_cast<off_t>(at)) ==
             static_cast<ssize_t>(job.each),
         "pwritev");
  }
}

void by_mapping(const Job& job) {
  need(ftruncate(job.file, static_cast<off_t>(job.total)) == 0, "ftruncate");
  auto* mapped = mmap(nullptr, job.total, PROT_READ | PROT_WRITE, MAP_SHARED, job.file, 0);
  need(mapped != MAP_FAILED, "mmap");
  for (std::size_t at = 0; at + job.each <= job.total; at += job.each) {
    std::memcpy(static_cast<char*>(mapped) + at, job.body.data(), job.each);
  }
  munmap(mapped, job.total);
}

void by_ring(const Job& job) {
  Ring ring(job.file, {});
  std::array<char, header_bytes> header{};
  for (std::size_t at = 0; at + job.each <= job.total; at += job.each) {
    std::array<iovec, 2> parts{
        {{header.data(), header.size()}, {job.body.data(), job.each - header.size()}}};
    ring.write(
        [&](io_uring_sqe& entry) {
          entry.opcode = IORING_OP_WRITEV;
          entry.off = at;
          entry.addr = reinterpret_cast<std::uintptr_t>(parts.data());
          entry.len = 2;
        },
        job.each);
  }
}

void by_ring_registered(const Job& job) {
  iovec all{job.body.data(), job.body.size()};
  Ring ring(job.file, std::span(&all, 1));
  for (std::size_t at = 0; at + job.each <= job.total; at += job.each) {
    ring.write(
        [&](io_uring_sqe& entry) {
          entry.opcode = IORING_OP_WRITE_FIXED;
          entry.off = at;
          entry.addr = reinterpret_cast<std::uintptr_t>(job.body.data());
          entry.len = static_cast<std::uint32_t>(job.each);
        },
        job.each);
  }
}

std::function<void(const Job&)> with_room(int mode, std::size_t step) {
  return [mode, step](const Job& job) {
    for (std::size_t at = 0; at < job.total; at += step) {
      need(fallocate(job.file, mode, static_cast<off_t>(at), static_cast<off_t>(step)) == 0,
           "fallocate");
    }
    by_pwritev(job);
  };
}

struct Way {
  const char* name;
  std::size_t each;
  std::function<void(const Job&)> run;
};

constexpr std::size_t mebibyte = 1 << 20;

std::vector<Way> ways_named(const std::string& part) {
  std::vector<Way> ways{
      {"pwritev, 16,000 bytes", 16'000, by_pwritev},
      {"pwritev, 100,000 bytes", 100'000, by_pwritev},
      {"pwritev, 1,000,000 bytes", 1'000'000, by_pwritev},
      {"pwritev, 1 MiB, aligned", mebibyte, by_pwritev},
      {"pwritev, 4 MiB, aligned", 4 * mebibyte, by_pwritev},
      {"fallocate of all, then 1,000,000 bytes", 1'000'000, with_room(0, 1024 * mebibyte)},
      {"fallocate of all, kept size", 1'000'000, with_room(FALLOC_FL_KEEP_SIZE, 1024 * mebibyte)},
      {"fallocate by 16 MiB, kept size", 1'000'000, with_room(FALLOC_FL_KEEP_SIZE, 16 * mebibyte)},
      {"a mapping, 1,000,000 bytes", 1'000'000, by_mapping},
      {"io_uring writev, 1,000,000 bytes", 1'000'000, by_ring},
      {"io_uring registered, 1,000,000 bytes", 1'000'000, by_ring_registered},
      {"io_uring writev, 16,000 bytes", 16'000, by_ring},
      {"io_uring registered, 16,000 bytes", 16'000, by_ring_registered},
      {"pwritev, 250 bytes", 250, by_pwritev},
      {"io_uring writev, 250 bytes", 250, by_ring},
      {"io_uring registered, 250 bytes", 250, by_ring_registered},
  };
  std::erase_if(ways, [&part](const Way& way) { return !std::string(way.name).contains(part); });
  return ways;
}

double measure(const Way& way, const std::string& folder, std::size_t bytes) {
  std::vector<char> body(4 * mebibyte, 'b');
  const auto total = way.each < 1000 ? bytes / 20 : bytes;
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  need(file >= 0, folder.c_str());
  const auto before = cpu_seconds();
  way.run({file, total, way.each, body});
  const auto used = cpu_seconds() - before;
  close(file);
  return used / (static_cast<double>(total) / 1e9);
}

void run(const std::string& folder, std::size_t bytes, int repetitions,
         const std::vector<Way>& ways) {
  std::vector<std::vector<double>> taken(ways.size());
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::size_t at = 0; at < ways.size(); ++at) {
      taken[at].push_back(measure(ways[at], folder, bytes));
    }
  }
  std::printf("%-40s %8s %8s %8s\n", "CPU s/GB", "median", "min", "max");
  for (std::size_t at = 0; at < ways.size(); ++at) {
    std::ranges::sort(taken[at]);
    std::printf("%-40s %8.3f %8.3f %8.3f\n", ways[at].name, taken[at][taken[at].size() / 2],
                taken[at].front(), taken[at].back());
  }
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  CLI::App app("What an append through the page cache takes, by each way that the kernel has.");
  std::string folder;
  std::size_t megabytes = 500;
  int repetitions = 5;
  app.add_option("--folder", folder, "on the disk that the logs would be on")->required();
  app.add_option("--megabytes", megabytes)->check(CLI::PositiveNumber);
  app.add_option("--repetitions", repetitions)->check(CLI::PositiveNumber);
  std::string only;
  app.add_option("--only", only, "the ways whose names have this in them");
  CLI11_PARSE(app, argc, argv);
  try {
    using namespace millrace::bench;
    run(folder, megabytes * 1'000'000, repetitions, ways_named(only));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench-append: %s\n", failure.what());
    return 1;
  }
}
