#include "client.h"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

#ifndef THREADED
#define THREADED
#endif
#include <zookeeper/zookeeper.h>

#include "library_log.h"

namespace millrace::zookeeper {

namespace {

Code code_of(int library_code) noexcept {
  switch (library_code) {
    case ZOK: return Code::ok;
    case ZNONODE: return Code::no_node;
    case ZNODEEXISTS: return Code::node_exists;
    case ZBADVERSION: return Code::bad_version;
    case ZNOTEMPTY: return Code::not_empty;
    case ZNOCHILDRENFOREPHEMERALS: return Code::no_children_of_ephemerals;
    case ZNOAUTH:
    case ZINVALIDACL:
    case ZAUTHFAILED: return Code::no_permission;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZSESSIONMOVED:
    case ZTHROTTLEDOP: return Code::connection_lost;
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZCLOSING: return Code::session_over;
    default: return Code::other;
  }
}

Answer answer_of(int library_code) {
  Answer answer{.code = code_of(library_code)};
  if (library_code != ZOK) answer.error = zerror(library_code);
  return answer;
}

NodeStat stat_of(const Stat& stat) noexcept {
  return {.created = stat.czxid,
          .changed = stat.mzxid,
          .children_changed = stat.pzxid,
          .owner = stat.ephemeralOwner,
          .version = stat.version,
          .children = stat.numChildren,
          .bytes = stat.dataLength};
}

const ACL_vector& acl_of(Access access) noexcept {
  static constinit ACL owner_writes[] = {
      {.perms = 31, .id = {.scheme = const_cast<char*>("auth"), .id = const_cast<char*>("")}},
      {.perms = 1,
       .id = {.scheme = const_cast<char*>("world"), .id = const_cast<char*>("anyone")}}};
  static constinit ACL_vector owner_writes_vector{.count = 2, .data = owner_writes};
  switch (access) {
    case Access::open: break;
    case Access::owner: return ZOO_CREATOR_ALL_ACL;
    case Access::owner_writes: return owner_writes_vector;
  }
  return ZOO_OPEN_ACL_UNSAFE;
}

const char* data_of(const std::optional<std::string>& value) noexcept {
  return value ? value->data() : nullptr;
}
int size_of(const std::optional<std::string>& value) noexcept {
  return value ? static_cast<int>(value->size()) : -1;
}

// Requests on their way; the library may forget those that are open when it is closed.
class Calls;

struct Request {
  Calls* calls = nullptr;
  Resolver<Answer> done;
  std::vector<zoo_op_result_t> results;  // of a multi
};

class Calls {
 public:
  explicit Calls(Shard& control) : control_(control) {}

  Request* add(Resolver<Answer> done) {
    auto request = std::make_unique<Request>(this, std::move(done));
    const std::scoped_lock lock(mutex_);
    open_.insert(request.get());
    return request.release();
  }
  // [any thread]
  void end(Request* raw, Answer answer) {
    {
      const std::scoped_lock lock(mutex_);
      open_.erase(raw);
    }
    std::unique_ptr<Request> request(raw);
    control_.post([done = std::move(request->done), answer = std::move(answer)]() mutable {
      done.resolve(std::move(answer));
    });
  }
  /// After the library's threads have ended.
  void end_all() {
    while (!open_.empty()) end(*open_.begin(), answer_of(ZCLOSING));
  }

 private:
  Shard& control_;
  std::mutex mutex_;
  std::unordered_set<Request*> open_;
};

void end(const void* data, Answer answer) {
  auto* request = static_cast<Request*>(const_cast<void*>(data));
  request->calls->end(request, std::move(answer));
}

// ---- the library's callbacks, on its threads ----

void on_done(int code, const void* data) { end(data, answer_of(code)); }

void on_text(int code, const char* /*path*/, const void* data) { end(data, answer_of(code)); }

void on_stat(int code, const Stat* stat, const void* data) {
  auto answer = answer_of(code);
  if (code == ZOK && stat) answer.stat = stat_of(*stat);
  end(data, std::move(answer));
}

void on_text_and_stat(int code, const char* /*path*/, const Stat* stat, const void* data) {
  on_stat(code, stat, data);
}

void on_value(int code, const char* value, int bytes, const Stat* stat, const void* data) {
  auto answer = answer_of(code);
  if (code == ZOK) {
    answer.folder = bytes < 0;
    if (bytes > 0) answer.value.assign(value, static_cast<std::size_t>(bytes));
    if (stat) answer.stat = stat_of(*stat);
  }
  end(data, std::move(answer));
}

void on_names(int code, const String_vector* names, const Stat* stat, const void* data) {
  auto answer = answer_of(code);
  if (code == ZOK) {
    if (stat) answer.stat = stat_of(*stat);
    answer.names.reserve(static_cast<std::size_t>(names->count));
    for (int at = 0; at < names->count; ++at) answer.names.emplace_back(names->data[at]);
  }
  end(data, std::move(answer));
}

void on_multi(int code, const void* data) {
  auto answer = answer_of(code);
  const auto& results = static_cast<const Request*>(data)->results;
  // Those before the one that was refused are told "ok", those after it "inconsistent".
  for (std::size_t at = 0; code != ZOK && at < results.size(); ++at) {
    if (results[at].err == ZOK || results[at].err == ZRUNTIMEINCONSISTENCY) continue;
    if (code_of(results[at].err) != answer.code) continue;
    answer.failed = at;
    break;
  }
  end(data, std::move(answer));
}

// Where the library's events go. Lives as long as the handle.
struct Door {
  Shard& control;
  std::weak_ptr<ClientEvents> events;
  std::size_t chroot_chars = 0;
};

std::optional<Connection> connection_of(int state) noexcept {
  if (state == ZOO_CONNECTED_STATE) return Connection::connected;
  if (state == ZOO_EXPIRED_SESSION_STATE) return Connection::expired;
  if (state == ZOO_AUTH_FAILED_STATE) return Connection::refused;
  if (state == ZOO_CONNECTING_STATE || state == ZOO_ASSOCIATING_STATE ||
      state == ZOO_NOTCONNECTED_STATE) {
    return Connection::connecting;
  }
  return std::nullopt;
}

void on_session(zhandle_t* /*handle*/, int type, int state, const char* /*path*/, void* context) {
  auto* door = static_cast<Door*>(context);
  const auto now = connection_of(state);
  if (type != ZOO_SESSION_EVENT || !now) return;
  door->control.post([to = door->events, now = *now] {
    if (const auto events = to.lock()) events->on_connection(now);
  });
}

// Watches are told of the session's events too.
void on_watch(zhandle_t* /*handle*/, int type, int /*state*/, const char* path, void* context) {
  auto* door = static_cast<Door*>(context);
  if (type == ZOO_SESSION_EVENT || type == ZOO_NOTWATCHING_EVENT) return;
  std::string_view below(path);
  below.remove_prefix(std::min(door->chroot_chars, below.size()));
  std::string name(below.empty() ? "/" : below);
  door->control.post([to = door->events, name = std::move(name)] {
    if (const auto events = to.lock()) events->on_watch(name);
  });
}

}  // namespace

std::string to_string(const SessionId& session) {
  static constexpr char digits[] = "0123456789abcdef";
  auto left = static_cast<std::uint64_t>(session.id);
  std::string text;
  do {
    text.insert(text.begin(), digits[left % 16]);
    left /= 16;
  } while (left != 0);
  return "0x" + text;
}

std::size_t bytes_of(const Op& op) noexcept {
  // Headers of the request and of its steps, flags, lengths, and the longest list of rights.
  constexpr std::size_t fixed = 96;
  return fixed + op.path.size() + (op.value ? op.value->size() : 0);
}

struct Client::Parts {
  Parts(ClientSettings given, Shard& control_shard, std::weak_ptr<ClientEvents> events, Log log)
      : settings(std::move(given)),
        control(control_shard),
        library_log(std::move(log)),
        calls(control_shard),
        door{control_shard, std::move(events)} {}

  std::string full(const std::string& path) const {
    if (path == "/") return chroot.empty() ? path : chroot;
    return chroot + path;
  }
  void* watcher() noexcept { return &door; }

  // `begin` hands the request to the library; what it refuses at once is answered here.
  template <class F>
  Pending<Answer> ask(F begin, std::vector<zoo_op_result_t> results = {}) {
    auto [resolver, pending] = make_pending<Answer>();
    auto* request = calls.add(std::move(resolver));
    request->results = std::move(results);
    const int code = begin(request);
    if (code != ZOK) calls.end(request, answer_of(code));
    return std::move(pending);
  }

  ClientSettings settings;
  std::string chroot;
  Shard& control;
  LibraryLog library_log;
  Calls calls;
  Door door;
  zhandle_t* handle = nullptr;
};

Client::Client(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Client>> Client::open(const ClientSettings& settings, Shard& control,
                                             std::weak_ptr<ClientEvents> events, const Log& log) {
  auto parts = std::make_unique<Parts>(settings, control, std::move(events), log);
  zoo_set_debug_level(ZOO_LOG_LEVEL_INFO);
  clientid_t resume{};
  if (settings.resume) {
    resume.client_id = settings.resume->id;
    std::ranges::copy(settings.resume->password, std::begin(resume.passwd));
  }
  const auto timeout_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(settings.session_timeout);
  parts->handle = zookeeper_init2(
      settings.servers.c_str(), &on_session, static_cast<int>(timeout_ms.count()),
      settings.resume ? &resume : nullptr, &parts->door, ZOO_NO_LOG_CLIENTENV, &LibraryLog::take);
  if (!parts->handle) {
    const int reason = errno;
    return Error{Errc::timed_out, settings.servers + ": none of the servers can be found: " +
                                      std::generic_category().message(reason)};
  }
  return std::unique_ptr<Client>(new Client(std::move(parts)));
}

Client::~Client() {
  zookeeper_close(parts_->handle);
  parts_->calls.end_all();
}

SessionId Client::session() const noexcept {
  SessionId session;
  if (const auto* id = zoo_client_id(parts_->handle)) {
    session.id = id->client_id;
    std::ranges::copy(id->passwd, session.password.begin());
  }
  return session;
}

Duration Client::session_timeout() const noexcept {
  return std::chrono::milliseconds(zoo_recv_timeout(parts_->handle));
}

std::string Client::server() const {
  const auto* server = zoo_get_current_server(parts_->handle);
  return server ? server : "";
}

void Client::enter(std::string chroot) {
  parts_->chroot = std::move(chroot);
  parts_->door.chroot_chars = parts_->chroot.size();
}

Pending<Answer> Client::authenticate() {
  const auto& digest = parts_->settings.digest;
  return parts_->ask([&](Request* request) {
    return zoo_add_auth(parts_->handle, "digest", digest.data(), static_cast<int>(digest.size()),
                        &on_done, request);
  });
}

Pending<Answer> Client::read(const std::string& path, bool watch) {
  return parts_->ask([&](Request* request) {
    return zoo_awget(parts_->handle, parts_->full(path).c_str(), watch ? &on_watch : nullptr,
                     parts_->watcher(), &on_value, request);
  });
}

Pending<Answer> Client::exists(const std::string& path, bool watch) {
  return parts_->ask([&](Request* request) {
    return zoo_awexists(parts_->handle, parts_->full(path).c_str(), watch ? &on_watch : nullptr,
                        parts_->watcher(), &on_stat, request);
  });
}

Pending<Answer> Client::children(const std::string& path, bool watch) {
  return parts_->ask([&](Request* request) {
    return zoo_awget_children2(parts_->handle, parts_->full(path).c_str(),
                               watch ? &on_watch : nullptr, parts_->watcher(), &on_names, request);
  });
}

Pending<Answer> Client::create(const std::string& path, std::optional<std::string> value,
                               bool ephemeral) {
  return parts_->ask([&](Request* request) {
    return zoo_acreate2(parts_->handle, parts_->full(path).c_str(), data_of(value), size_of(value),
                        &acl_of(parts_->settings.access), ephemeral ? ZOO_EPHEMERAL : 0,
                        &on_text_and_stat, request);
  });
}

Pending<Answer> Client::multi(const std::vector<Op>& ops) {
  std::vector<std::string> paths;
  paths.reserve(ops.size());
  for (const auto& op : ops) paths.push_back(parts_->full(op.path));
  std::vector<zoo_op_t> steps(ops.size());
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const auto& op = ops[at];
    const auto* path = paths[at].c_str();
    switch (op.kind) {
      case Op::Kind::create:
        zoo_create_op_init(&steps[at], path, data_of(op.value), size_of(op.value),
                           &acl_of(parts_->settings.access), op.ephemeral ? ZOO_EPHEMERAL : 0,
                           nullptr, 0);
        break;
      case Op::Kind::set:
        zoo_set_op_init(&steps[at], path, data_of(op.value), size_of(op.value), op.version,
                        nullptr);
        break;
      case Op::Kind::remove: zoo_delete_op_init(&steps[at], path, op.version); break;
    }
  }
  std::vector<zoo_op_result_t> results(ops.size());
  return parts_->ask(
      [&](Request* request) {
        return zoo_amulti(parts_->handle, static_cast<int>(steps.size()), steps.data(),
                          request->results.data(), &on_multi, request);
      },
      std::move(results));
}

Pending<Answer> Client::sync() {
  return parts_->ask([&](Request* request) {
    return zoo_async(parts_->handle, parts_->full("/").c_str(), &on_text, request);
  });
}

}  // namespace millrace::zookeeper
