// Configuration, ports, ZooKeeper and the broker's own word.
#include <millrace/bytes.h>

#include "doctor_fixture.h"
#include "kernel/cli/doctor_zookeeper_wire.h"

namespace millrace::kernel::cli::doctor {
namespace {

using DoctorConfigTest = DoctorTest;
using DoctorNetworkTest = DoctorTest;
using DoctorZooKeeperTest = DoctorTest;
using DoctorBrokerTest = DoctorTest;

TEST_F(DoctorConfigTest, EveryMistakeIsAFindingAndOnlyTheMachineIsLookedAt) {
  patient.config_wrong = {{Errc::invalid_argument, "x.toml:2:1: unknown key"},
                          {Errc::invalid_argument, "x.toml:3:1: expected"}};
  const auto findings = examine(patient, machine);
  ASSERT_GT(findings.size(), 2U);
  EXPECT_EQ(findings[0].evidence, "x.toml:2:1: unknown key");
  EXPECT_EQ(findings[1].severity, problem);
  for (const auto& finding : findings) EXPECT_NE(finding.check, "data.folder");
  EXPECT_EQ(findings.back().check, "clock.synchronised");
}

TEST_F(DoctorConfigTest, WhatIsHardlyMeantIsAWarning) {
  patient.config_remarks = {"x.toml:2:1: plugins.path: /x is not there"};
  machine.facts[patient.config] = {false, 100, 101, 0400};
  const auto findings = check_config(patient, machine);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].severity, ok);
  EXPECT_EQ(findings[1].severity, warning);
  EXPECT_EQ(findings[1].evidence, patient.config_remarks.front());
}

TEST_F(DoctorConfigTest, TheServiceMustBeAbleToReadItsFile) {
  struct Case {
    FileFacts file;
    Severity severity;
  };
  for (const auto& [file, severity] : {Case{{false, 0, 0, 0644}, ok},
                                       {{false, 0, 0, 0640}, problem},
                                       {{false, 0, 101, 0640}, ok},
                                       {{false, 0, 101, 0604}, problem},
                                       {{false, 100, 101, 0400}, ok}}) {
    machine.facts[patient.config] = file;
    expect(&check_config, severity, "owner");
  }
  machine.facts.erase(patient.config);
  expect(&check_config, problem, "No such file");
  patient.config.clear();
  expect(&check_config, ok, "the embedded default");
}

TEST_F(DoctorConfigTest, PluginsThatAreRefusedAreSaidWithTheReason) {
  expect(&check_plugins, ok, "all 7 plugins");
  machine.refused = {{"/x/codec.so", "built for plugin ABI 2"}};
  const auto findings = check_plugins(patient, machine);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[1].severity, warning);
  EXPECT_EQ(findings[1].evidence, "built for plugin ABI 2");
}

/// A listening socket of the port 9092 and who has it open.
void held_by(FakeMachine& machine, const std::string& pid, const std::string& name) {
  machine.not_free["127.0.0.1:9092"] = Errc::conflict;
  machine.files["/proc/net/tcp"] =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 555 1\n"
      "   1: 0100007F:2384 0100007F:1234 01 00000000:00000000 00:00000000 00000000  0 0 556 1\n";
  machine.folders["/proc"] = {"self", "7", pid};
  machine.folders["/proc/" + pid + "/fd"] = {"3", "4"};
  machine.links["/proc/" + pid + "/fd/3"] = "/dev/null";
  machine.links["/proc/" + pid + "/fd/4"] = "socket:[555]";
  machine.files["/proc/" + pid + "/comm"] = name + "\n";
}

TEST_F(DoctorNetworkTest, APortIsFreeOrOursOrSomebodyElses) {
  patient.listeners.resize(1);
  expect(&check_ports, warning, "does not listen on 127.0.0.1:9092");
  patient.broker.reset();
  expect(&check_ports, ok, "free for the broker");
  held_by(machine, "99", "python3");
  expect(&check_ports, problem, "taken by python3, process 99");
  EXPECT_EQ(check_ports(patient, machine).front().remedy,
            "end it, or set transport.kafka.listen to another port");
  held_by(machine, "99", "millraced");
  EXPECT_TRUE(check_ports(patient, machine)
                  .front()
                  .remedy.starts_with(
                      "if that is the broker to look at, give doctor the --config and --set"));
  held_by(machine, "99", "python3");
  patient.broker = BrokerProcess{99, "", 100, {}};
  expect(&check_ports, ok, "the broker listens on 127.0.0.1:9092");
  patient.broker = BrokerProcess{98, "", 100, {}};
  expect(&check_ports, problem, "taken by python3, process 99");
  machine.denied.insert("/proc/99/fd");
  expect(&check_ports, warning, "may not see");
  patient.broker.reset();
  expect(&check_ports, problem, "may not see");
  machine.not_free["127.0.0.1:9092"] = Errc::invalid_argument;
  expect(&check_ports, problem, "nobody can listen");
  patient.listeners[0].listen = "127.0.0.1:0";
  expect(&check_ports, ok, "any free port");
}

TEST_F(DoctorNetworkTest, WhatIsAdvertisedResolvesAndIsReached) {
  expect(&check_advertised, ok, "only programs on this machine");
  breaks("coordination.plugin", "zookeeper");
  expect(&check_advertised, warning, "only programs on this machine");
  patient.listeners[0].advertise = "broker.example:9092";
  expect(&check_advertised, ok, "broker.example is 192.0.2.7");
  machine.names["broker.example"] = {"127.0.1.1"};  // as Debian's installer writes /etc/hosts
  expect(&check_advertised, warning, "only programs on this machine");
  machine.unreachable.insert("broker.example:9092");
  expect(&check_advertised, problem, "cannot be reached at broker.example:9092");
  patient.listeners[0].advertise = "broker.exmaple:9092";
  expect(&check_advertised, problem, "broker.exmaple is not known here");
  patient.listeners[0] = {"kafka", "kafka", "127.0.0.1:0", ""};
  EXPECT_TRUE(check_advertised(patient, machine).empty());
}

template <std::integral T>
void put(std::string& to, T value) {
  std::byte bytes[sizeof value];
  store_be(bytes, value);
  to.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

/// What a server answers: a session that lasts `timeout_ms`, and a reply for each of `errors`.
std::string served(std::int32_t timeout_ms, const std::vector<std::int32_t>& errors) {
  std::string hello;
  put(hello, std::int32_t{0});
  put(hello, timeout_ms);
  put(hello, std::int64_t{1});
  put(hello, std::int32_t{16});
  hello.append(16, 'p');
  std::string answer;
  put(answer, static_cast<std::int32_t>(hello.size()));
  answer += hello;
  std::int32_t number = 0;
  for (const auto error : errors) {
    std::string reply;
    put(reply, ++number);
    put(reply, std::int64_t{7});
    put(reply, error);
    if (error == 0) reply.append(68, 's');
    put(answer, static_cast<std::int32_t>(reply.size()));
    answer += reply;
  }
  return answer;
}

TEST(ZooKeeperWireTest, AnAnswerSaysOfEachPathWhetherItExists) {
  using testing::ElementsAre;
  const auto answer = served(6000, {0, -101, -112});
  const auto found = zookeeper_answer(answer, 3);
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, ElementsAre(true, false, std::nullopt));
  EXPECT_FALSE(zookeeper_answer("", 1));
  EXPECT_FALSE(zookeeper_answer(served(0, {}), 1));  // the session was refused
  for (std::size_t bytes = 0; bytes < answer.size(); ++bytes) {
    const auto part = zookeeper_answer(std::string_view(answer).substr(0, bytes), 3);
    if (part) {
      EXPECT_EQ(part->size(), 3U);
    }
  }
}

class ZooKeeperServers {
 public:
  ZooKeeperServers(Patient& patient, FakeMachine& machine) : machine_(machine) {
    patient.settings.insert_or_assign("coordination.plugin", "zookeeper");
    patient.settings.insert_or_assign("coordination.connect", "zk1:2181,zk2,[::1]:2182/millrace");
    for (const auto* name : {"zk1:2181", "zk2:2181", "[::1]:2182"}) says(name, {0, 0, 0});
  }
  void says(const std::string& server, std::vector<std::int32_t> errors,
            std::string statistics = "Latency min/avg/max: 0/0.5/9\nMode: follower\n") {
    machine_.answers[server] = [errors = std::move(errors), statistics](std::string_view text) {
      return Result<std::string>(text == "srvr" ? statistics : served(6000, errors));
    };
  }

 private:
  FakeMachine& machine_;
};

std::vector<std::string> told(const Findings& findings) {
  std::vector<std::string> lines;
  for (const auto& one : findings) {
    lines.push_back(std::string(name_of(one.severity)) + ": " + one.finding);
    EXPECT_EQ(one.remedy.empty(), one.severity == Severity::ok) << one.finding;
  }
  return lines;
}

TEST_F(DoctorZooKeeperTest, IsNotAskedWhereItDoesNotCoordinate) {
  EXPECT_TRUE(check_zookeeper(patient, machine).empty());
}

TEST_F(DoctorZooKeeperTest, ServersChrootAndSessionAreTold) {
  ZooKeeperServers servers(patient, machine);
  EXPECT_THAT(
      told(check_zookeeper(patient, machine)),
      testing::ElementsAre("ok: ZooKeeper at zk1:2181 serves", "ok: ZooKeeper at zk2:2181 serves",
                           "ok: ZooKeeper at [::1]:2182 serves", "ok: /millrace is there",
                           "ok: broker 1 has its session"));
  EXPECT_EQ(check_zookeeper(patient, machine)[0].evidence,
            "took a session; srvr: follower, 0.5 ms on average");
}

TEST_F(DoctorZooKeeperTest, OneThatIsAwayIsAWarningAndAllAreAProblem) {
  ZooKeeperServers servers(patient, machine);
  machine.answers.erase("zk1:2181");
  EXPECT_EQ(told(check_zookeeper(patient, machine))[0],
            "warning: ZooKeeper at zk1:2181 does not serve");
  machine.answers["zk2:2181"] = [](std::string_view) { return Result<std::string>(""); };
  machine.answers.erase("[::1]:2182");
  EXPECT_THAT(told(check_zookeeper(patient, machine)),
              testing::ElementsAre("problem: ZooKeeper at zk1:2181 does not serve",
                                   "problem: ZooKeeper at zk2:2181 does not serve",
                                   "problem: ZooKeeper at [::1]:2182 does not serve"));
  EXPECT_THAT(check_zookeeper(patient, machine)[1].evidence, testing::HasSubstr("no sessions"));
}

TEST_F(DoctorZooKeeperTest, ASlowOneAndOneThatTellsNothingAreSaid) {
  ZooKeeperServers servers(patient, machine);
  servers.says("zk1:2181", {0, 0, 0}, "Latency min/avg/max: 0/50.5/900\nMode: leader\n");
  servers.says("zk2:2181", {0, 0, 0}, "srvr is not executed because it is not in the whitelist.\n");
  const auto findings = check_zookeeper(patient, machine);
  EXPECT_EQ(findings[0].severity, warning);
  EXPECT_EQ(findings[1].severity, ok);
  EXPECT_THAT(findings[1].evidence, testing::HasSubstr("4lw.commands.whitelist"));
}

TEST_F(DoctorZooKeeperTest, ABrokerWithoutItsSessionOrItsChrootIsSaid) {
  ZooKeeperServers servers(patient, machine);
  servers.says("zk1:2181", {-101, -101, 0});
  auto lines = told(check_zookeeper(patient, machine));
  EXPECT_EQ(lines[3], "problem: /millrace is not there, although a broker runs");
  EXPECT_EQ(lines[4], "problem: broker 1 runs and has no session");
  patient.broker.reset();
  lines = told(check_zookeeper(patient, machine));
  EXPECT_EQ(lines[3], "ok: /millrace is made at the first start");
  EXPECT_EQ(lines[4], "ok: broker.id 1 is free");
  servers.says("zk1:2181", {0, 0, 0});
  EXPECT_EQ(told(check_zookeeper(patient, machine))[4],
            "warning: a broker 1 is registered, and none runs here");
}

PartitionInfo partition(std::int32_t number, std::int32_t leader,
                        std::vector<std::int32_t> in_sync) {
  return {.partition = number,
          .leader = leader,
          .replicas = {1, 2},
          .in_sync = std::move(in_sync),
          .offline = {}};
}

TEST_F(DoctorBrokerTest, ABrokerThatDoesNotAnswerIsAProblemWhenOneRuns) {
  expect(&check_cluster, problem, "connect: refused");
  expect(&check_health, problem, "nobody at 127.0.0.1:9644");
  patient.broker.reset();
  expect(&check_cluster, warning, "no broker answers at 127.0.0.1:9092");
  expect(&check_health, warning, "no health is told");
  patient.bootstrap.clear();
  patient.admin.clear();
  EXPECT_TRUE(check_cluster(patient, machine).empty());
  EXPECT_TRUE(check_health(patient, machine).empty());
}

TEST_F(DoctorBrokerTest, BrokersControllerAndPartitionsAreTold) {
  MetadataAnswer cluster;
  cluster.controller_id = 2;
  cluster.brokers = {{1, {"a", 1}, ""}, {2, {"b", 2}, ""}};
  cluster.topics.resize(1);
  cluster.topics[0].topic.name = "orders";
  cluster.topics[0].partitions = {partition(0, 1, {1, 2}), partition(1, 2, {2, 1})};
  machine.cluster = cluster;
  EXPECT_THAT(told(check_cluster(patient, machine)),
              testing::ElementsAre("ok: a broker answers at 127.0.0.1:9092",
                                   "ok: broker 1 is one of 2", "ok: broker 2 is the controller",
                                   "ok: all partitions have their leader and their replicas"));
  cluster.topics[0].partitions[0].in_sync = {1};
  machine.cluster = cluster;
  auto findings = check_cluster(patient, machine);
  EXPECT_EQ(findings[3].severity, warning);
  EXPECT_EQ(findings[3].evidence, "orders-0");
  cluster.topics[0].partitions[1].leader = -1;
  cluster.controller_id = -1;
  cluster.brokers.erase(cluster.brokers.begin());
  machine.cluster = cluster;
  EXPECT_THAT(
      told(check_cluster(patient, machine)),
      testing::ElementsAre("ok: a broker answers at 127.0.0.1:9092",
                           "problem: broker 1 is not one of its cluster",
                           "problem: the cluster has no controller: nothing of it can be changed",
                           "problem: 1 partitions have no leader"));
}

TEST_F(DoctorBrokerTest, HealthIsWhatTheBrokerSays) {
  const auto says = [this](std::string answer) {
    machine.answers["127.0.0.1:9644"] = [answer = std::move(answer)](std::string_view text) {
      EXPECT_TRUE(text.starts_with("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:9644\r\n")) << text;
      return Result<std::string>(answer);
    };
  };
  says("HTTP/1.1 200 OK\r\nx: y\r\n\r\n{\"status\":\"ok\"}\n");
  expect(&check_health, ok, "/healthz: 200 {\"status\":\"ok\"}");
  says("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":\"degraded\"}");
  expect(&check_health, problem, "503 {\"status\":\"degraded\"}");
  says("SSH-2.0-x\r\n\r\n");
  expect(&check_health, problem, "does not answer as transport http does");
}

TEST_F(DoctorBrokerTest, CorruptBatchesThatTheScrubberHasFoundAreAProblem) {
  const auto counts = [this](const std::string& line) {
    machine.answers["127.0.0.1:9644"] = [line](std::string_view) {
      return Result<std::string>("HTTP/1.1 200 OK\r\n\r\n# HELP x y\n" + line + "x 1\n");
    };
  };
  counts("millrace_log_corrupt_batches 0\n");
  expect(&check_scrubbed, ok, "no log file");
  counts("millrace_log_corrupt_batches 3\n");
  expect(&check_scrubbed, problem, "3 batches on the disk are corrupt");
  counts("");
  EXPECT_TRUE(check_scrubbed(patient, machine).empty()) << "an older broker";
}

TEST_F(DoctorBrokerTest, TheBrokersVersionIsComparedWithTheTools) {
  const auto runs = [this](const std::string& version) {
    machine.answers["127.0.0.1:9644"] = [version](std::string_view) {
      return Result<std::string>("HTTP/1.1 200 OK\r\n\r\n# HELP\nmillrace_build_info{version=\"" +
                                 version + "\"} 1\n");
    };
  };
  EXPECT_TRUE(check_version(patient, machine).empty());  // nobody tells
  runs(MILLRACE_VERSION);
  expect(&check_version, ok, "of one version");
  runs("0.0.7");
  expect(&check_version, warning, "broker 0.0.7 (127.0.0.1:9644/metrics), tool");
  machine.links["/proc/4711/exe"] = "/usr/bin/millraced";
  expect(&check_version, warning, "of another version");
  machine.links["/proc/4711/exe"] = "/usr/bin/millraced (deleted)";
  expect(&check_version, warning, "replaced meanwhile");
}

}  // namespace
}  // namespace millrace::kernel::cli::doctor
