// ZooKeeper as it is seen from this machine, where it coordinates.
#include <algorithm>
#include <charconv>

#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_proc.h"
#include "kernel/cli/doctor_zookeeper_wire.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli::doctor {

namespace {

constexpr double slow_ms = 50;

struct Connect {
  std::vector<std::string> servers;
  std::string chroot;
};

// "zk1:2181,zk2/millrace", which the plugin has checked.
Connect connect_of(std::string_view text) {
  constexpr std::string_view usual_port = ":2181";
  Connect connect;
  const auto slash = std::min(text.find('/'), text.size());
  connect.chroot = text.substr(slash);
  auto servers = text.substr(0, slash);
  while (!servers.empty()) {
    const auto comma = std::min(servers.find(','), servers.size());
    std::string server(servers.substr(0, comma));
    const auto port = server.rfind(':');
    const bool has_port = port != std::string::npos && server.find(']', port) == std::string::npos;
    connect.servers.push_back(has_port ? server : server.append(usual_port));
    servers.remove_prefix(std::min(comma + 1, servers.size()));
  }
  return connect;
}

// What one server says.
struct Server {
  std::string address;
  bool serves = false;
  std::string why;  // it does not
  std::vector<std::optional<bool>> exist;
  std::string mode;                  // "leader"; empty where the server does not tell
  std::optional<double> latency_ms;  // on average
};

void read_statistics(std::string_view text, Server& server) {
  for (const auto line : lines_of(text)) {
    const auto words = words_of(line);
    if (words.size() >= 2 && words[0] == "Mode:") server.mode = words[1];
    if (words.size() >= 3 && words[0] == "Latency") {
      // "Latency min/avg/max: 0/0.9/41"
      const auto first = words[2].find('/');
      const auto second = words[2].find('/', first + 1);
      if (second == std::string_view::npos) continue;
      const auto average = words[2].substr(first + 1, second - first - 1);
      double number = 0;
      const auto* begin = average.data();
      const auto* end = begin + average.size();
      if (std::from_chars(begin, end, number).ec == std::errc()) {
        server.latency_ms = number;
      }
    }
  }
}

Server ask(const std::string& at, const std::vector<std::string>& paths, Probe& probe) {
  Server server{
      .address = at, .serves = false, .why = {}, .exist = {}, .mode = {}, .latency_ms = {}};
  const auto address = parse_address(at);
  if (!address) {
    server.why = address.error().detail;
    return server;
  }
  const auto answer = probe.say(*address, zookeeper_question(paths));
  if (!answer) {
    const bool silent = answer.error().code == Errc::timed_out;
    server.why = silent ? "it answers nothing: " + answer.error().detail : answer.error().detail;
    return server;
  }
  auto exist = zookeeper_answer(*answer, paths.size());
  server.serves = exist.has_value();
  if (exist) {
    server.exist = *std::move(exist);
  } else {
    server.why = "it takes no sessions: it has no majority, or is no ZooKeeper";
  }
  if (const auto statistics = probe.say(*address, "srvr")) read_statistics(*statistics, server);
  return server;
}

Finding of_server(const Server& server, bool others_serve) {
  const auto* check = "zookeeper.server";
  if (!server.serves) {
    return {check, others_serve ? Severity::warning : Severity::problem,
            concat("ZooKeeper at ", server.address, " does not serve"), server.why,
            "see whether coordination.connect names it, whether it runs (systemctl status "
            "zookeeper), whether most of its ensemble does, and whether a firewall stands between"};
  }
  auto evidence = concat("took a session; ",
                         server.mode.empty()
                             ? std::string("srvr is not told (4lw.commands.whitelist), so mode and "
                                           "latency are not known")
                             : concat("srvr: ", server.mode));
  if (server.latency_ms) {
    evidence += concat(", ", number_text(*server.latency_ms), " ms on average");
    if (*server.latency_ms > slow_ms) {
      return {check, Severity::warning, concat("ZooKeeper at ", server.address, " is slow"),
              evidence, "give its transaction log (dataLogDir) a disk of its own"};
    }
  }
  return {check, Severity::ok, concat("ZooKeeper at ", server.address, " serves"), evidence, ""};
}

Finding of_chroot(const std::string& chroot, bool exists, const Patient& patient) {
  const auto* check = "zookeeper.chroot";
  if (exists) return {check, Severity::ok, concat(chroot, " is there"), "exists", ""};
  if (!patient.broker) {
    return {check, Severity::ok, concat(chroot, " is made at the first start"), "it does not exist",
            ""};
  }
  return {check, Severity::problem, concat(chroot, " is not there, although a broker runs"),
          "it does not exist", "see whether coordination.connect names the right path"};
}

Finding of_session(const std::string& path, bool exists, const Patient& patient) {
  const auto* check = "zookeeper.session";
  const auto id = patient.setting("broker.id");
  if (exists && patient.broker) {
    return {check, Severity::ok, concat("broker ", id, " has its session"), path + " exists", ""};
  }
  if (exists) {
    return {check, Severity::warning, concat("a broker ", id, " is registered, and none runs here"),
            path + " exists",
            "another machine has this broker.id, or the broker ended less than a session time-out "
            "ago"};
  }
  if (!patient.broker) {
    return {check, Severity::ok, concat("broker.id ", id, " is free"), path + " does not exist",
            ""};
  }
  return {check, Severity::problem, concat("broker ", id, " runs and has no session"),
          path + " does not exist",
          "it neither serves nor acknowledges without: see its log for why it cannot connect"};
}

}  // namespace

Findings check_zookeeper(const Patient& patient, Probe& probe) {
  if (patient.setting("coordination.plugin") != "zookeeper") return {};
  const auto [addresses, chroot] = connect_of(patient.setting("coordination.connect"));
  const auto registration = concat(chroot, "/brokers/ids/", patient.setting("broker.id"));
  const std::vector<std::string> paths{chroot.empty() ? "/" : chroot, registration};
  std::vector<Server> servers;
  for (const auto& address : addresses) servers.push_back(ask(address, paths, probe));
  const auto serving = std::ranges::find(servers, true, &Server::serves);
  Findings findings;
  for (const auto& server : servers) {
    findings.push_back(of_server(server, serving != servers.end()));
  }
  if (serving == servers.end()) return findings;
  if (serving->exist[0] && !chroot.empty()) {
    findings.push_back(of_chroot(chroot, *serving->exist[0], patient));
  }
  if (serving->exist[1]) findings.push_back(of_session(registration, *serving->exist[1], patient));
  return findings;
}

}  // namespace millrace::kernel::cli::doctor
