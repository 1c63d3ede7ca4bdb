#include "connect.h"

#include <algorithm>

#include <millrace/environment.h>

namespace millrace::zookeeper {

namespace {

constexpr std::string_view default_port = ":2181";

Error wrong(std::string_view text, std::string_view why) {
  return Error{Errc::invalid_argument,
               "connect = \"" + std::string(text) + "\": " + std::string(why) +
                   "; write it as \"host:port,host:port\" or \"host:port,host:port/chroot\""};
}

Result<std::string> parse_server(std::string_view text, std::string_view server) {
  std::string full(server);
  const bool has_port = server.rfind(':') != std::string_view::npos && !server.ends_with(']');
  if (!has_port) full += default_port;
  const auto address = parse_address(full);
  if (!address || address->host.empty() || address->port == 0) {
    return wrong(text, "'" + std::string(server) + "' is no host with a port");
  }
  return full;
}

}  // namespace

Result<ConnectString> parse_connect(std::string_view text) {
  ConnectString connect;
  const auto slash = std::min(text.find('/'), text.size());
  const auto chroot = text.substr(slash);
  if (chroot.size() > 1) {
    if (!valid_path(chroot)) {
      return wrong(text, "the chroot '" + std::string(chroot) + "' is no path of a znode");
    }
    connect.chroot = chroot;
  }
  auto servers = text.substr(0, slash);
  while (true) {
    const auto comma = std::min(servers.find(','), servers.size());
    MR_TRY(auto server, parse_server(text, servers.substr(0, comma)));
    if (!connect.servers.empty()) connect.servers += ',';
    connect.servers += server;
    if (comma == servers.size()) return connect;
    servers.remove_prefix(comma + 1);
  }
}

// What the server refuses: empty steps, "." and "..", control and other unprintable characters.
bool valid_path(std::string_view path) noexcept {
  if (!path.starts_with('/') || path.size() < 2) return false;
  for (std::size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find('/', at + 1), path.size());
    const auto step = path.substr(at + 1, end - at - 1);
    if (step.empty() || step == "." || step == "..") return false;
    at = end;
  }
  return std::ranges::none_of(path, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 0x20 || code == 0x7f;
  });
}

std::string_view parent_of(std::string_view path) noexcept {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace millrace::zookeeper
