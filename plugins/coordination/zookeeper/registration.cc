#include "registration.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "connect.h"

namespace millrace::zookeeper {

namespace {

constexpr std::string_view members = "/millrace/members";
constexpr std::string_view cluster_mark = "/millrace/cluster";
constexpr std::string_view cluster_file = "/coordination.cluster";

// One folder; it may be there.
Task<> make_folder(std::shared_ptr<Session> session, std::string path, std::string what) {
  MR_CO_TRY(const auto found,
            co_await session->ask([&path](Client& client) { return client.exists(path); }));
  if (found.code == Code::ok) co_return {};
  MR_CO_TRY(const auto made, co_await session->ask([&path](Client& client) {
    return client.create(path, std::nullopt, false);
  }));
  if (made.code == Code::ok || made.code == Code::node_exists) co_return {};
  if (made.code == Code::no_permission) {
    co_return Error{Errc::io, path + ": ZooKeeper does not let us make " + what +
                                  ": the access list above it wants another coordination.digest, "
                                  "or gives read access alone"};
  }
  co_return Error{Errc::io, path + ": " + what + " cannot be made: " + made.error};
}

Task<> make_folders(std::shared_ptr<Session> session, std::string path, std::string what) {
  for (std::size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at);
    MR_CO_CHECK(co_await make_folder(session, path.substr(0, at), what));
    if (at != std::string::npos) ++at;
  }
  co_return {};
}

std::string text_of(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    text += digits[code / 16];
    text += digits[code % 16];
  }
  return text;
}

bool bytes_of_text(std::string_view text, std::span<char> into) {
  if (text.size() != 2 * into.size()) return false;
  for (std::size_t at = 0; at < into.size(); ++at) {
    unsigned byte = 0;
    const auto* begin = text.data() + 2 * at;
    const auto [end, error] = std::from_chars(begin, begin + 2, byte, 16);
    if (error != std::errc{} || end != begin + 2) return false;
    into[at] = static_cast<char>(byte);
  }
  return true;
}

}  // namespace

Task<> enter_chroot(std::shared_ptr<Session> session, std::string chroot) {
  if (chroot.empty()) co_return {};
  MR_CO_CHECK(co_await make_folders(session, chroot, "the chroot of coordination.connect"));
  MR_CO_CHECK(co_await session->connected());
  session->client().enter(std::move(chroot));
  co_return {};
}

namespace {

// The mark below the chroot, or "".
Task<std::string> read_mark(std::shared_ptr<Session> session) {
  const std::string path(cluster_mark);
  MR_CO_TRY(auto found,
            co_await session->ask([&path](Client& client) { return client.read(path); }));
  if (found.code == Code::ok) co_return std::move(found.value);
  if (found.code == Code::no_node) co_return std::string();
  co_return Error{Errc::io, path + ": it cannot be read: " + found.error};
}

// Makes one; when another broker was faster, its.
Task<std::string> make_mark(std::shared_ptr<Session> session) {
  const std::string path(cluster_mark);
  MR_CO_CHECK(co_await make_folders(session, std::string(parent_of(path)), "its own folder"));
  const auto mark = to_string(session->environment().random().uuid());
  MR_CO_TRY(const auto made, co_await session->ask(
                                 [&](Client& client) { return client.create(path, mark, false); }));
  if (made.code == Code::ok || made.code == Code::node_exists) {
    co_return co_await read_mark(std::move(session));
  }
  co_return Error{Errc::io, path + ": it cannot be made: " + made.error};
}

Result<std::string> read_saved(FileSystem& files, const std::string& path) {
  const auto read = read_file(files, path);
  if (read) return std::string(read->text());
  if (read.error().code == Errc::not_found) return std::string();
  return read.error();
}

}  // namespace

Task<> check_cluster(std::shared_ptr<Session> session, std::string chroot, std::string folder) {
  auto& files = session->environment().files();
  auto& workers = session->environment().workers();
  const auto path = folder + std::string(cluster_file);
  auto reading = on_worker(workers, [&files, path] { return read_saved(files, path); });
  MR_CO_TRY(const auto saved, co_await std::move(reading));
  MR_CO_TRY(auto mark, co_await read_mark(session));
  if (!saved.empty() && saved != mark) {
    co_return Error{Errc::conflict,
                    "the data in " + folder + " is of the cluster " + saved +
                        ", and ZooKeeper has " + (mark.empty() ? "none" : "the cluster " + mark) +
                        " below '" + (chroot.empty() ? "/" : chroot) +
                        "'; correct coordination.connect, or use another broker.data (or remove " +
                        path + " if you are sure that the two belong together)"};
  }
  if (!saved.empty()) co_return {};
  if (mark.empty()) {
    MR_CO_TRY(mark, co_await make_mark(session));
  }
  auto saving = on_worker(workers, [&files, path, mark] {
    return replace_file(files, path, std::as_bytes(std::span(mark)));
  });
  co_return co_await std::move(saving);
}

std::string member_path(std::int32_t broker) {
  return std::string(members) + "/" + std::to_string(broker);
}

Task<std::int64_t> register_member(std::shared_ptr<Session> session,
                                   std::shared_ptr<Watches> watches, std::int32_t broker,
                                   std::string value, Duration patience) {
  const auto path = member_path(broker);
  MR_CO_CHECK(co_await make_folders(session, std::string(members), "the list of members"));
  auto& control = session->environment().control();
  const auto give_up_at = control.now() + patience;
  bool said = false;
  while (true) {
    MR_CO_TRY(const auto seen, co_await Watches::next_change(watches, path, Seen{}));
    MR_CO_TRY(const auto made, co_await session->ask([&](Client& client) {
      return client.create(path, value, true);
    }));
    if (made.code == Code::ok) co_return made.stat.created;
    if (made.code != Code::node_exists) {
      co_return Error{Errc::io, path + ": the broker cannot be registered: " + made.error};
    }
    MR_CO_TRY(const auto other,
              co_await session->ask([&path](Client& client) { return client.read(path); }));
    if (other.code != Code::ok) continue;
    // The answer to an earlier try was lost.
    if (other.stat.owner == session->id().id) co_return other.stat.created;
    const auto whose = "the session " + to_string(SessionId{.id = other.stat.owner});
    if (control.now() >= give_up_at) {
      co_return Error{Errc::conflict, "a broker with broker.id = " + std::to_string(broker) +
                                          " runs already, with its data in " + other.value + ": " +
                                          whose + " holds " + path +
                                          "; end it, or give this one another broker.id"};
    }
    if (!std::exchange(said, true)) {
      session->log().warning(
          "another session is registered under our broker id; waiting for its end, in case that "
          "it is of a broker that has died",
          {{"broker", broker}, {"session", whose}, {"data", other.value}});
    }
    auto waiting = with_deadline(Watches::next_change(watches, path, seen),
                                 std::max(give_up_at - control.now(), Duration(1)));
    const auto waited = co_await std::move(waiting);
    if (!waited && waited.error().code != Errc::timed_out) co_return waited.error();
  }
}

// Another start of the machine, another identity.
std::string SavedSession::place() const {
  constexpr auto boot_id = "/proc/sys/kernel/random/boot_id";
  std::string place;
  std::array<std::byte, 64> bytes{};
  if (const auto file = files_.open(boot_id, OpenMode::read)) {
    const auto size = (*file)->read_at(0, bytes).value_or(0);
    place.assign(reinterpret_cast<const char*>(bytes.data()), size);
    std::erase(place, '\n');
  }
  return place + ' ' + folder_;
}

Result<> SavedSession::save(const SessionId& session) const {
  const auto text = place() + '\n' + std::to_string(session.id) + '\n' +
                    text_of({session.password.data(), session.password.size()}) + '\n';
  return replace_file(files_, path(), std::as_bytes(std::span(text)));
}

std::optional<SessionId> SavedSession::load() const {
  const auto read = read_file(files_, path());
  if (!read) return std::nullopt;
  const auto bytes = read->bytes();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::array<std::string_view, 3> lines;
  for (auto& line : lines) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    line = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  SessionId session;
  const std::string number(lines[1]);
  const auto* end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, session.id);
  if (lines[0] != place() || error != std::errc{} || at != end) return std::nullopt;
  if (!bytes_of_text(lines[2], session.password)) return std::nullopt;
  return session;
}

}  // namespace millrace::zookeeper
