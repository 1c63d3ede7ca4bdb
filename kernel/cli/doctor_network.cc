// Where the broker listens, and where clients are told that it does.
#include <algorithm>

#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_proc.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli::doctor {

namespace {

std::vector<std::string> inodes_of(std::uint16_t port, Probe& probe) {
  std::vector<std::string> inodes;
  for (const auto* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const auto text = probe.read(table);
    if (!text) continue;
    for (auto& socket : listening_in(*text)) {
      if (socket.port == port) inodes.push_back(std::move(socket.inode));
    }
  }
  return inodes;
}

bool has_one(std::string_view pid, const std::vector<std::string>& inodes, Probe& probe) {
  const auto folder = concat("/proc/", pid, "/fd");
  const auto files = probe.list(folder);
  if (!files) return false;  // ended meanwhile, or another user's
  return std::ranges::any_of(*files, [&](const std::string& file) {
    const auto target = probe.target_of(concat(folder, "/", file));
    return target && std::ranges::any_of(inodes, [&target](const std::string& inode) {
             return *target == concat("socket:[", inode, "]");
           });
  });
}

struct Holder {
  std::string pid;
  std::string name;
};

// Who listens on a port; none where this user may not see it.
std::optional<Holder> holder_of(std::uint16_t port, const Patient& patient, Probe& probe) {
  const auto inodes = inodes_of(port, probe);
  if (inodes.empty()) return std::nullopt;
  if (patient.broker && has_one(std::to_string(patient.broker->pid), inodes, probe)) {
    return Holder{std::to_string(patient.broker->pid), "millraced"};
  }
  const auto processes = probe.list("/proc");
  if (!processes) return std::nullopt;
  for (const auto& pid : *processes) {
    if (!unsigned_of(pid) || !has_one(pid, inodes, probe)) continue;
    const auto name = probe.read(concat("/proc/", pid, "/comm"));
    return Holder{pid, name ? std::string(name->substr(0, name->find('\n'))) : "?"};
  }
  return std::nullopt;
}

Finding taken(const ListenerFacts& listener, const Address& address, const Patient& patient,
              Probe& probe) {
  const auto check = concat("port.", listener.name);
  const auto holder = holder_of(address.port, patient, probe);
  const auto remedy = concat("end it, or set transport.", listener.name, ".listen to another port");
  if (!holder) {
    return {check, patient.broker ? Severity::warning : Severity::problem,
            concat("somebody listens on ", listener.listen), "whose it is, this user may not see",
            patient.broker ? "run this as root to see whether it is the broker" : remedy};
  }
  const auto evidence =
      concat("/proc/", holder->pid, "/fd: ", holder->name, ", process ", holder->pid);
  if (patient.broker && holder->pid == std::to_string(patient.broker->pid)) {
    return {check, Severity::ok, concat("the broker listens on ", listener.listen), evidence, ""};
  }
  return {
      check, Severity::problem,
      concat(listener.listen, " is taken by ", holder->name, ", process ", holder->pid), evidence,
      holder->name == "millraced"
          ? concat("if that is the broker to look at, give doctor the --config and --set that it "
                   "was started with; else ",
                   remedy)
          : remedy};
}

Finding of_port(const ListenerFacts& listener, const Patient& patient, Probe& probe) {
  const auto check = concat("port.", listener.name);
  const auto address = parse_address(listener.listen);
  if (!address) {
    return {check, Severity::problem, concat("transport.", listener.name, ".listen is no address"),
            address.error().detail, "write HOST:PORT"};
  }
  if (address->port == 0) {
    return {check, Severity::ok, concat("transport ", listener.name, " takes any free port"),
            concat("listen = ", listener.listen), ""};
  }
  const auto free = probe.try_listen(*address);
  if (!free && free.error().code == Errc::conflict)
    return taken(listener, *address, patient, probe);
  if (!free) {
    return {check, Severity::problem, concat("nobody can listen on ", listener.listen),
            free.error().detail,
            concat("set transport.", listener.name,
                   ".listen to an address of this machine (ip address) and a port above 1023")};
  }
  if (patient.broker) {
    return {check, Severity::warning,
            concat("the broker runs, and does not listen on ", listener.listen), "the port is free",
            "the configuration has changed since it started, or it still starts: see systemctl "
            "status millrace"};
  }
  return {check, Severity::ok, concat(listener.listen, " is free for the broker"),
          "listened there for a moment", ""};
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Finding of_advertised(const ListenerFacts& listener, const std::string& text,
                      const Patient& patient, Probe& probe) {
  const auto check = concat("advertise.", listener.name);
  const auto remedy = concat("set transport.", listener.name,
                             ".advertise to the HOST:PORT by which others reach this machine");
  const auto address = parse_address(text);
  if (!address) {
    return {check, Severity::problem, concat(text, " is no address"), address.error().detail,
            remedy};
  }
  const auto resolved = probe.addresses_of(address->host);
  if (!resolved || resolved->empty()) {
    return {check, Severity::problem,
            concat("the advertised name ", address->host, " is not known here"),
            resolved ? "it has no address" : resolved.error().detail,
            concat("put it into DNS or /etc/hosts, or ", remedy)};
  }
  const auto evidence = concat(address->host, " is ", joined(*resolved));
  if (patient.broker) {
    if (const auto connected = probe.try_connect(*address); !connected) {
      return {check, Severity::problem, concat("the broker cannot be reached at ", text),
              concat(evidence, "; ", connected.error().detail),
              concat("look for a firewall between, or ", remedy)};
    }
  }
  if (std::ranges::all_of(*resolved, is_loopback)) {
    const bool clustered = patient.setting("coordination.plugin") != "standalone";
    return {check, clustered ? Severity::warning : Severity::ok,
            concat("only programs on this machine reach ", text), evidence,
            clustered ? concat("other brokers and clients elsewhere do not: ", remedy) : ""};
  }
  return {check, Severity::ok,
          concat(text, patient.broker ? " is reached from here" : " is an address"), evidence, ""};
}

}  // namespace

Findings check_ports(const Patient& patient, Probe& probe) {
  Findings findings;
  for (const auto& listener : patient.listeners) {
    findings.push_back(of_port(listener, patient, probe));
  }
  return findings;
}

Findings check_advertised(const Patient& patient, Probe& probe) {
  Findings findings;
  for (const auto& listener : patient.listeners) {
    if (!listener.advertise) continue;
    const auto& text = listener.advertise->empty() ? listener.listen : *listener.advertise;
    if (text.ends_with(":0")) continue;  // chosen at the start
    findings.push_back(of_advertised(listener, text, patient, probe));
  }
  return findings;
}

}  // namespace millrace::kernel::cli::doctor
