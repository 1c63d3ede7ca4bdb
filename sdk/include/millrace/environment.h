// The outside, as plugins and the kernel see it: clock, chance, network, files, pools. The real one
// lives in kernel/env; the simulated one in testing/ runs whole clusters in one thread under a
// seed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/payload.h>
#include <millrace/shard.h>
#include <millrace/types.h>

namespace millrace {

/// [any thread]
class Clock {
 public:
  virtual ~Clock() = default;
  /// Never goes back; for waiting and measuring.
  virtual MonoTime now() const noexcept = 0;
  /// Wall time; may jump. For timestamps of records and files.
  virtual Timestamp wall() const noexcept = 0;
};

/// [any thread]
class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(MutableBytes bytes) = 0;
  std::uint64_t next() {
    std::uint64_t value = 0;
    fill(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  /// A version 4 UUID (RFC 9562).
  Uuid uuid();
};

// ---- network ----

struct Address {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
};
/// "127.0.0.1:9092", "[::1]:9092", "broker.example:9092".
Result<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);

/// A connected byte stream. At most one receive and one send at a time, which may overlap.
/// [its shard]
class Stream {
 public:
  virtual ~Stream() = default;
  /// Waits for bytes and fills the front of `space` (which the caller keeps alive). 0: the peer has
  /// closed its side. Errc::closed after close().
  virtual Task<std::size_t> receive(MutableBytes space) = 0;
  /// Completes when the last byte is in the kernel's hands. File ranges go by sendfile.
  virtual Task<> send(Payload payload) = 0;
  /// Ends both directions; waiting calls complete with Errc::closed. Idempotent.
  virtual void close() noexcept = 0;
  virtual const Address& peer() const noexcept = 0;
};

/// [the shard that called listen]
class Listener {
 public:
  virtual ~Listener() = default;
  /// The next connection, as a stream of `owner`: hand it to that shard at once and touch it there
  /// alone. Errc::closed after close(). Running out of file descriptors is waited out, not an
  /// error.
  virtual Task<std::unique_ptr<Stream>> accept(Shard& owner) = 0;
  virtual const Address& local() const noexcept = 0;
  virtual void close() noexcept = 0;
};

class Network {
 public:
  virtual ~Network() = default;
  /// Port 0 takes a free one; see Listener::local().
  virtual Task<std::unique_ptr<Listener>> listen(Address address) = 0;
  /// A stream of the calling shard.
  virtual Task<std::unique_ptr<Stream>> connect(Address address) = 0;
};

// ---- files ----

/// An open file. Reads at positions may run on any thread, also while another appends. Calls may
/// block on the disk: those that a shard makes (write_at into the page cache, resident) do not.
class File {
 public:
  virtual ~File() = default;
  /// Fills the front of `into`; fewer bytes only at the end of the file.
  virtual Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const = 0;
  /// One gathered write of all parts, or an error and an unknown tail behind `position`.
  virtual Result<> write_at(std::uint64_t position, std::span<const Bytes> parts) = 0;
  virtual Result<> truncate(std::uint64_t size) = 0;
  /// On stable storage when it returns.
  virtual Result<> sync() = 0;
  virtual Result<std::uint64_t> size() const = 0;
  /// Whether reading this range would not wait for the disk (best effort).
  virtual bool resident(std::uint64_t position, std::uint64_t bytes) const noexcept = 0;
  virtual const std::string& path() const noexcept = 0;
  /// For sendfile; -1 where there is none.
  virtual int descriptor() const noexcept { return -1; }
};

struct FileInfo {
  std::string name;
  bool is_folder = false;
  std::uint64_t size = 0;
  Timestamp modified;
};

struct SpaceInfo {
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_free = 0;
};

enum class OpenMode { read, write, create };  // write: must exist; create: made when missing

/// [any thread; may block on the disk]
class FileSystem {
 public:
  /// Held until destroyed, also against other processes; freed by the system when we die.
  class Lock {
   public:
    virtual ~Lock() = default;
  };

  virtual ~FileSystem() = default;
  virtual Result<std::shared_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  /// Errc::not_found when there is none.
  virtual Result<FileInfo> info(const std::string& path) = 0;
  /// Sorted by name.
  virtual Result<std::vector<FileInfo>> list(const std::string& folder) = 0;
  virtual Result<> make_folders(const std::string& path) = 0;
  virtual Result<> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<> remove(const std::string& path) = 0;
  virtual Result<> remove_tree(const std::string& path) = 0;
  /// Makes creations, renames and removals in `folder` durable.
  virtual Result<> sync_folder(const std::string& folder) = 0;
  /// Errc::conflict, naming the owner's process id, when another process holds it.
  virtual Result<std::unique_ptr<Lock>> lock(const std::string& path) = 0;
  virtual Result<SpaceInfo> space(const std::string& path) = 0;
  /// Makes everything durable that was written so far on the disk that holds `folder`, names too:
  /// for many files one call instead of one each.
  virtual Result<> sync_all(const std::string& folder) = 0;
};

/// The whole content of a small file.
Result<Buffer> read_file(FileSystem& files, const std::string& path);
/// Writes `path` as a whole or not at all: a temporary file, sync, rename, sync of the folder.
Result<> replace_file(FileSystem& files, const std::string& path, Bytes content);

// ---- pools ----

/// Threads that may block.
class BlockingPool {
 public:
  virtual ~BlockingPool() = default;
  /// [any thread]
  virtual void submit(Job job) = 0;
  /// A job that runs keeps its thread for long, perhaps for ever: another thread takes its place
  /// until take_back(), which that job calls when it does come back.  [any thread]
  virtual void lend() {}
  virtual void take_back() {}
};

/// Runs `work`, which returns Result<T>, on the pool, and brings the result back to this shard.
template <class F>
auto on_worker(BlockingPool& pool, F work) -> Task<typename decltype(work())::value_type> {
  using R = decltype(work());
  using T = typename R::value_type;
  Shard& here = co_await this_shard();
  auto [resolver, pending] = make_pending<T>();
  pool.submit([home = &here, work = std::move(work), done = std::move(resolver)]() mutable {
    R result = work();
    home->post([done = std::move(done), result = std::move(result)]() mutable {
      done.resolve(std::move(result));
    });
  });
  co_return co_await pending;
}

/// What the kernel hands to plugins, and what a test replaces.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual Clock& clock() noexcept = 0;
  virtual Random& random() noexcept = 0;
  virtual Network& network() noexcept = 0;
  virtual FileSystem& files() noexcept = 0;
  virtual BlockingPool& workers() noexcept = 0;
  /// The data shards; at least one.
  virtual std::span<Shard* const> shards() noexcept = 0;
  virtual Shard& control() noexcept = 0;
};

}  // namespace millrace
