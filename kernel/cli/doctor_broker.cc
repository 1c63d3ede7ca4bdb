// What the running broker says of itself and of its cluster.
#include <algorithm>

#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_proc.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli::doctor {

namespace {

constexpr std::size_t named_max = 5;

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};

Result<HttpAnswer> get(const std::string& at, std::string_view path, Probe& probe) {
  MR_TRY(const auto address, parse_address(at));
  MR_TRY(auto answer, probe.say(address, concat("GET ", path, " HTTP/1.1\r\nHost: ", at,
                                                "\r\nConnection: close\r\n\r\n")));
  constexpr std::string_view end_of_head = "\r\n\r\n";
  const auto head_bytes = answer.find(end_of_head);
  const auto words = words_of(std::string_view(answer).substr(0, head_bytes));
  const auto status =
      words.size() > 1 && words[0] == "HTTP/1.1" ? unsigned_of(words[1]) : std::nullopt;
  if (!status || head_bytes == std::string::npos) {
    return Error{Errc::corrupt, at + " does not answer as transport http does"};
  }
  return HttpAnswer{static_cast<unsigned>(*status), answer.substr(head_bytes + end_of_head.size())};
}

// While no broker runs it is no surprise that none answers.
Severity when_silent(const Patient& patient) {
  return patient.broker ? Severity::problem : Severity::warning;
}

Finding of_registration(const MetadataAnswer& cluster, const Patient& patient) {
  const auto* check = "cluster.brokers";
  const auto id = patient.setting("broker.id");
  std::vector<std::string> ids;
  for (const auto& broker : cluster.brokers) ids.push_back(std::to_string(broker.id));
  const auto evidence =
      concat("Metadata of ", patient.bootstrap, ": brokers ", ids.empty() ? "none" : joined(ids));
  if (!contains(ids, id)) {
    return {check, Severity::problem, concat("broker ", id, " is not one of its cluster"), evidence,
            "it has lost its session, or another broker listens there: see its log "
            "(journalctl -u millrace)"};
  }
  return {check, Severity::ok, concat("broker ", id, " is one of ", ids.size()), evidence, ""};
}

Finding of_controller(const MetadataAnswer& cluster, const Patient& patient) {
  const auto* check = "cluster.controller";
  const bool known = std::ranges::any_of(
      cluster.brokers, [&cluster](const auto& one) { return one.id == cluster.controller_id; });
  const auto evidence =
      concat("Metadata of ", patient.bootstrap, ": controller ", cluster.controller_id);
  if (!known) {
    return {check, Severity::problem, "the cluster has no controller: nothing of it can be changed",
            evidence,
            "one is elected within the session time-out; else see whether the brokers "
            "reach ZooKeeper"};
  }
  return {check, Severity::ok, concat("broker ", cluster.controller_id, " is the controller"),
          evidence, ""};
}

std::string named(const std::vector<std::string>& partitions) {
  std::vector<std::string> front(
      partitions.begin(),
      partitions.begin() + static_cast<std::ptrdiff_t>(std::min(partitions.size(), named_max)));
  auto text = joined(front);
  if (partitions.size() > named_max)
    text += concat(" and ", partitions.size() - named_max, " more");
  return text;
}

Finding of_partitions(const MetadataAnswer& cluster) {
  const auto* check = "cluster.partitions";
  std::vector<std::string> offline;
  std::vector<std::string> short_of_replicas;
  std::size_t count = 0;
  for (const auto& topic : cluster.topics) {
    for (const auto& partition : topic.partitions) {
      ++count;
      const auto name = concat(topic.topic.name, "-", partition.partition);
      if (partition.leader < 0) {
        offline.push_back(name);
      } else if (partition.in_sync.size() < partition.replicas.size()) {
        short_of_replicas.push_back(name);
      }
    }
  }
  if (!offline.empty()) {
    return {check, Severity::problem, concat(offline.size(), " partitions have no leader"),
            named(offline), "start the brokers that have them: millrace topic describe NAME"};
  }
  if (!short_of_replicas.empty()) {
    return {check, Severity::warning,
            concat(short_of_replicas.size(), " partitions have fewer replicas in sync than wanted"),
            named(short_of_replicas), "a broker is away or catches up: millrace cluster status"};
  }
  return {check, Severity::ok, "all partitions have their leader and their replicas",
          concat(count, " partitions"), ""};
}

}  // namespace

Findings check_cluster(const Patient& patient, Probe& probe) {
  if (patient.bootstrap.empty()) return {};
  const auto cluster = probe.metadata(patient.bootstrap);
  if (!cluster) {
    return {{"broker.answers", when_silent(patient),
             concat("no broker answers at ", patient.bootstrap), cluster.error().detail,
             "see systemctl status millrace, and give another address with --bootstrap"}};
  }
  return {{"broker.answers", Severity::ok, concat("a broker answers at ", patient.bootstrap),
           "ApiVersions, Metadata", ""},
          of_registration(*cluster, patient),
          of_controller(*cluster, patient),
          of_partitions(*cluster)};
}

Findings check_health(const Patient& patient, Probe& probe) {
  constexpr unsigned good = 200;
  const auto* check = "broker.health";
  if (patient.admin.empty()) return {};  // no transport http
  const auto answer = get(patient.admin, "/healthz", probe);
  if (!answer) {
    return {{check, when_silent(patient), concat("no health is told at ", patient.admin),
             answer.error().detail,
             "see systemctl status millrace, and give another address with "
             "--admin"}};
  }
  const auto evidence = concat(patient.admin, "/healthz: ", answer->status, " ",
                               answer->body.substr(0, answer->body.find('\n')));
  if (answer->status == good) return {{check, Severity::ok, "the broker is well", evidence, ""}};
  return {
      {check, Severity::problem, "the broker does not serve all that it has", evidence,
       "its log says why (journalctl -u millrace); partitions that are failing have a disk that "
       "is full or broken"}};
}

// What the broker's scrubber has found since it started.
Findings check_scrubbed(const Patient& patient, Probe& probe) {
  const auto* check = "log.corrupt";
  if (patient.admin.empty()) return {};
  const auto answer = get(patient.admin, "/metrics", probe);
  if (!answer) return {};  // check_health has told
  constexpr std::string_view before = "\nmillrace_log_corrupt_batches ";
  const auto at = answer->body.find(before);
  if (at == std::string::npos) return {};
  const auto begin = at + before.size();
  const auto count = answer->body.substr(begin, answer->body.find('\n', begin) - begin);
  const auto evidence = concat(patient.admin, "/metrics: millrace_log_corrupt_batches ", count);
  if (count == "0") {
    return {{check, Severity::ok, "no log file that was read again has a wrong checksum", evidence,
             ""}};
  }
  return {
      {check, Severity::problem, concat(count, " batches on the disk are corrupt"), evidence,
       "the broker's log names each with its file and offsets (journalctl -u millrace); look at "
       "the disk, then stop the broker and see millrace log verify"}};
}

Findings check_version(const Patient& patient, Probe& probe) {
  const auto* check = "version";
  const std::string ours = MILLRACE_VERSION;
  const auto* restart = "systemctl restart millrace";
  if (patient.broker) {
    const auto program = probe.target_of(concat("/proc/", patient.broker->pid, "/exe"));
    if (program && program->ends_with(" (deleted)")) {
      return {{check, Severity::warning, "the broker runs a program that was replaced meanwhile",
               concat("/proc/", patient.broker->pid, "/exe: ", *program), restart}};
    }
  }
  if (patient.admin.empty()) return {};
  const auto answer = get(patient.admin, "/metrics", probe);
  if (!answer) return {};  // check_health has told
  constexpr std::string_view before = "millrace_build_info{version=\"";
  const auto at = answer->body.find(before);
  if (at == std::string::npos) return {};
  const auto begin = at + before.size();
  const auto theirs = answer->body.substr(begin, answer->body.find('"', begin) - begin);
  const auto evidence = concat("broker ", theirs, " (", patient.admin, "/metrics), tool ", ours);
  if (theirs != ours) {
    return {{check, Severity::warning, "the broker is of another version than this tool", evidence,
             restart}};
  }
  return {{check, Severity::ok, "broker and tool are of one version", evidence, ""}};
}

}  // namespace millrace::kernel::cli::doctor
