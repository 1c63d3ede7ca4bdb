#include "kernel/cli/doctor_probe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <millrace/shard.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/env/block_on.h"
#include "kernel/env/system_error.h"
#include "kernel/host/plugin_files.h"

namespace millrace::kernel::cli::doctor {

namespace {

constexpr Duration answer_max = std::chrono::seconds(5);
constexpr std::size_t answer_bytes_max = std::size_t{64} << 20;
constexpr std::size_t receive_bytes = std::size_t{64} << 10;

Task<> listen_there(Network& network, Address address) {
  MR_CO_TRY(const auto listener, co_await network.listen(std::move(address)));
  listener->close();
  co_return {};
}

Task<> connect_there(Network& network, Address address) {
  MR_CO_CHECK(co_await network.connect(std::move(address)));
  co_return {};
}

Task<std::string> exchange(Network& network, Address address, std::string text) {
  MR_CO_TRY(const auto stream, co_await network.connect(std::move(address)));
  MR_CO_CHECK(co_await stream->send(Payload(Buffer::copy_of(text))));
  std::string answer;
  std::vector<std::byte> space(receive_bytes);
  while (answer.size() < answer_bytes_max) {
    const auto bytes = co_await stream->receive(space);
    // What came before a connection broke is an answer too.
    if (!bytes && answer.empty()) co_return bytes.error();
    if (!bytes || *bytes == 0) break;
    answer += as_text(Bytes(space).first(*bytes));
  }
  co_return std::move(answer);
}

Task<MetadataAnswer> ask_for_metadata(Network& network, std::string address) {
  MR_CO_TRY(const auto cluster, co_await ClusterClient::connect(network, std::move(address)));
  co_return co_await cluster->metadata(std::nullopt);
}

// What `make` begins on a shard, as far as it ends in time.
template <class T, class F>
Result<T> within_time(RealEnvironment& environment, F make) {
  return block_on(*environment.shards().front(),
                  [make] { return with_deadline(make(), answer_max); });
}

}  // namespace

Result<std::string> MachineProbe::read(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_error(errno, "read " + path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return system_error(errno, "read " + path);
  return text;
}

Result<std::vector<std::string>> MachineProbe::list(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(folder, failed);
  while (!failed && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(failed);
  }
  if (failed) return system_error(failed.value(), "list " + folder);
  return names;
}

Result<FileFacts> MachineProbe::look_at(const std::string& path) {
  constexpr mode_t permissions = 0777;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return system_error(errno, "look at " + path);
  return FileFacts{.is_folder = S_ISDIR(status.st_mode),
                   .owner = status.st_uid,
                   .group = status.st_gid,
                   .mode = status.st_mode & permissions};
}

Result<std::string> MachineProbe::target_of(const std::string& link) {
  std::error_code failed;
  const auto target = std::filesystem::read_symlink(link, failed);
  if (failed) return system_error(failed.value(), "read the link " + link);
  return target.string();
}

Result<VolumeFacts> MachineProbe::volume(const std::string& path) {
  struct statvfs status{};
  if (::statvfs(path.c_str(), &status) != 0) return system_error(errno, "space of " + path);
  return VolumeFacts{.bytes = status.f_blocks * status.f_frsize,
                     .bytes_free = status.f_bavail * status.f_frsize,
                     .inodes = status.f_files,
                     .inodes_free = status.f_favail};
}

Result<ClockFacts> MachineProbe::clock() {
  struct timex state{};  // asks alone
  if (::adjtimex(&state) < 0) return system_error(errno, "adjtimex");
  return ClockFacts{.synchronised = (state.status & STA_UNSYNC) == 0,
                    .error_max = std::chrono::microseconds(state.maxerror)};
}

std::uint32_t MachineProbe::user() { return ::geteuid(); }

Result<std::vector<std::string>> MachineProbe::addresses_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (code != 0) return Error{Errc::not_found, host + ": " + ::gai_strerror(code)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const auto* one = found; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text.data());
    }
  }
  return addresses;
}

Result<> MachineProbe::try_listen(const Address& address) {
  return within_time<void>(environment_,
                           [&] { return listen_there(environment_.network(), address); });
}

Result<> MachineProbe::try_connect(const Address& address) {
  return within_time<void>(environment_,
                           [&] { return connect_there(environment_.network(), address); });
}

Result<std::string> MachineProbe::say(const Address& address, std::string_view text) {
  return within_time<std::string>(
      environment_, [&] { return exchange(environment_.network(), address, std::string(text)); });
}

Result<MetadataAnswer> MachineProbe::metadata(const std::string& address) {
  return within_time<MetadataAnswer>(
      environment_, [&] { return ask_for_metadata(environment_.network(), address); });
}

std::vector<RefusedPlugin> MachineProbe::refused_plugins() {
  const PluginFiles files(plugin_folders_);
  std::vector<RefusedPlugin> refused;
  for (const auto kind : plugin_kinds) {
    for (const auto& name : files.names(kind)) {
      const auto path = files.find(kind, name);
      if (!path) continue;
      const auto library = load_tried(*path, kind, trial_);
      if (!library) refused.push_back({*path, library.error().detail});
    }
  }
  return refused;
}

}  // namespace millrace::kernel::cli::doctor
