// ZooKeeper's C client library behind calls that end on the control thread: the one place that
// knows its handles, callbacks and error numbers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/observe.h>
#include <millrace/shard.h>

namespace millrace::zookeeper {

enum class Code : std::uint8_t {
  ok,
  no_node,
  node_exists,
  bad_version,
  not_empty,                  ///< removing what has children
  no_children_of_ephemerals,  ///< creating below an ephemeral znode
  no_permission,
  connection_lost,  ///< whether the server has done it is not known
  session_over,     ///< expired, or closed by us
  other,
};

/// Of a znode, as the server counts.
struct NodeStat {
  std::int64_t created = 0;  ///< zxid; says whether it is still the same znode
  std::int64_t changed = 0;  ///< zxid of its value
  std::int64_t children_changed = 0;
  std::int64_t owner = 0;  ///< the session of an ephemeral znode, else 0
  std::int32_t version = 0;
  std::int32_t children = 0;
  std::int32_t bytes = 0;
};

/// What came of one request.
struct Answer {
  Code code = Code::ok;
  std::string error{};               ///< the library's words when it is not ok
  std::string value{};               ///< of read()
  bool folder = false;               ///< read() of a znode that has no value at all
  NodeStat stat{};                   ///< of read(), exists(), children(), create()
  std::vector<std::string> names{};  ///< of children(), in no order
  std::size_t failed = 0;            ///< of multi(): the operation that was refused
};

/// One step of a multi.
struct Op {
  enum class Kind : std::uint8_t { create, set, remove };
  Kind kind = Kind::create;
  std::string path{};
  std::optional<std::string> value{};  ///< none: a folder
  bool ephemeral = false;
  std::int32_t version = 0;  ///< of set and remove: the one that it must have
};

/// Who may do what with the znodes that we create.
enum class Access : std::uint8_t { open, owner, owner_writes };

struct SessionId {
  std::int64_t id = 0;
  std::array<char, 16> password{};
};
/// As ZooKeeper's own logs write it: "0x1000045a7b30001".
std::string to_string(const SessionId& session);

enum class Connection : std::uint8_t { connecting, connected, expired, refused };

/// Told on the control thread, in the order in which the library says so.
class ClientEvents {
 public:
  virtual ~ClientEvents() = default;
  virtual void on_connection(Connection now) = 0;
  /// The watch of this path has fired, and is no more.
  virtual void on_watch(const std::string& path) = 0;
};

struct ClientSettings {
  std::string servers;
  Duration session_timeout{};
  Access access = Access::open;
  std::string digest;                 ///< "user:password", or ""
  std::optional<SessionId> resume{};  ///< this session instead of a new one
};

/// One session's handle. Every request is on its way when the call returns; many may be.
/// [control thread]
class Client {
 public:
  /// Resolves host names, so it may block. Errc::timed_out when none is known.  [a worker]
  static Result<std::unique_ptr<Client>> open(const ClientSettings& settings, Shard& control,
                                              std::weak_ptr<ClientEvents> events, const Log& log);
  /// Ends the session, if there is a connection, and the library's threads; requests that wait are
  /// answered session_over. May take as long as the server does, at most some seconds.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Once connected.
  SessionId session() const noexcept;
  Duration session_timeout() const noexcept;
  /// "127.0.0.1:2181", or "" when there is no connection.
  std::string server() const;

  /// From here on paths are below `chroot`. Before the first watch.
  void enter(std::string chroot);

  Pending<Answer> authenticate();
  Pending<Answer> read(const std::string& path, bool watch = false);
  Pending<Answer> exists(const std::string& path, bool watch = false);
  Pending<Answer> children(const std::string& path, bool watch = false);
  /// `value` none: a folder.
  Pending<Answer> create(const std::string& path, std::optional<std::string> value, bool ephemeral);
  Pending<Answer> multi(const std::vector<Op>& ops);
  /// Answered by the leader, behind all that it had decided before.
  Pending<Answer> sync();

 private:
  struct Parts;
  explicit Client(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Bytes that an operation takes in a packet, at most.
std::size_t bytes_of(const Op& op) noexcept;

}  // namespace millrace::zookeeper
