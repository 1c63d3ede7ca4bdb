// A machine of which every part can be broken, and a broker that is well on it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/cli/doctor.h"

namespace millrace::kernel::cli::doctor {

class FakeMachine final : public Probe {
 public:
  std::map<std::string, std::string> files;
  std::set<std::string> denied;  ///< paths that this user may not read, list or look at
  std::map<std::string, std::vector<std::string>> folders;
  std::map<std::string, FileFacts> facts;
  std::map<std::string, std::string> links;
  Result<VolumeFacts> space = VolumeFacts{1000UL << 30, 500UL << 30, 1'000'000, 900'000};
  Result<ClockFacts> time = ClockFacts{true, std::chrono::milliseconds(3)};
  std::uint32_t runs_as = 0;
  std::map<std::string, std::vector<std::string>> names{{"127.0.0.1", {"127.0.0.1"}},
                                                        {"broker.example", {"192.0.2.7"}}};
  std::map<std::string, Errc> not_free;  ///< addresses, and what listening there answers
  std::set<std::string> unreachable;
  /// What is answered at an address to a text.
  std::map<std::string, std::function<Result<std::string>(std::string_view)>> answers;
  Result<MetadataAnswer> cluster = Error{Errc::closed, "connect: refused"};
  std::vector<RefusedPlugin> refused;

  Result<std::string> read(const std::string& path) override { return found(files, path); }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    return found(folders, folder);
  }
  Result<FileFacts> look_at(const std::string& path) override { return found(facts, path); }
  Result<std::string> target_of(const std::string& link) override { return found(links, link); }
  Result<VolumeFacts> volume(const std::string& /*path*/) override { return space; }
  Result<ClockFacts> clock() override { return time; }
  std::uint32_t user() override { return runs_as; }
  Result<std::vector<std::string>> addresses_of(const std::string& host) override {
    return found(names, host);
  }
  Result<> try_listen(const Address& address) override {
    const auto taken = not_free.find(to_string(address));
    if (taken == not_free.end()) return {};
    return Error{taken->second, "listen on " + taken->first};
  }
  Result<> try_connect(const Address& address) override {
    if (!unreachable.contains(to_string(address))) return {};
    return Error{Errc::closed, "connect to " + to_string(address) + ": refused"};
  }
  Result<std::string> say(const Address& address, std::string_view text) override {
    const auto answer = answers.find(to_string(address));
    if (answer == answers.end()) return Error{Errc::closed, "nobody at " + to_string(address)};
    return answer->second(text);
  }
  Result<MetadataAnswer> metadata(const std::string& /*address*/) override { return cluster; }
  std::vector<RefusedPlugin> refused_plugins() override { return refused; }

 private:
  template <class Map>
  Result<typename Map::mapped_type> found(const Map& map, const std::string& key) {
    if (denied.contains(key)) return Error{Errc::io, key + ": Permission denied"};
    const auto entry = map.find(key);
    if (entry == map.end()) return Error{Errc::not_found, key + ": No such file or directory"};
    return entry->second;
  }
};

/// What stands for all severities in a table of cases.
inline constexpr auto ok = Severity::ok;
inline constexpr auto warning = Severity::warning;
inline constexpr auto problem = Severity::problem;

/// A broker that runs as user 100 and is well; each case breaks one thing.
class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    patient.config = "/etc/millrace/millrace.toml";
    patient.settings = {{"broker.id", "1"},
                        {"broker.data", "/data/millrace"},
                        {"broker.memory", "268435456"},
                        {"coordination.plugin", "standalone"},
                        {"storage.open_files_max", "4096"},
                        {"storage.reserve_bytes", "67108864"},
                        {"transport.kafka.\"max.connections\"", "10000"},
                        {"defaults.\"log.retention.bytes\"", "-1"},
                        {"defaults.\"log.segment.bytes\"", "1073741824"}};
    patient.listeners = {{"kafka", "kafka", "127.0.0.1:9092", ""},
                         {"http", "http", "127.0.0.1:9644", std::nullopt}};
    patient.plugins = 7;
    patient.bootstrap = "127.0.0.1:9092";
    patient.admin = "127.0.0.1:9644";
    patient.user = {"millrace", 100, {101}};
    patient.broker = BrokerProcess{4711, "/data/millrace/.lock", 100, {101}};
    for (const auto* folder : {"/", "/data"}) machine.facts[folder] = {true, 0, 0, 0755};
    machine.facts["/data/millrace"] = {true, 100, 101, 0750};
    machine.files["/proc/self/mountinfo"] =
        "1 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "2 1 8:2 / /data rw,noatime - xfs /dev/sdb1 rw\n";
    machine.files["/proc/meminfo"] =
        "MemTotal:       16777216 kB\nMemAvailable:   12582912 kB\nDirty:  1024 kB\n"
        "Writeback:  0 kB\nSwapTotal:      0 kB\n";
  }

  void breaks(std::string_view key, std::string value) {
    patient.settings.insert_or_assign(std::string(key), std::move(value));
  }
  /// The one finding of a check.
  Finding only(Check check) {
    const auto findings = check(patient, machine);
    EXPECT_EQ(findings.size(), 1U);
    return findings.empty() ? Finding{.check = "nothing"} : findings.front();
  }
  /// That finding is of a severity; when it is not ok it has evidence and a remedy.
  void expect(Check check, Severity severity, std::string_view said) {
    const auto finding = only(check);
    EXPECT_EQ(name_of(finding.severity), name_of(severity)) << finding.finding;
    EXPECT_THAT(finding.finding + " | " + finding.evidence, testing::HasSubstr(std::string(said)));
    EXPECT_FALSE(finding.check.empty());
    EXPECT_FALSE(finding.evidence.empty()) << finding.finding;
    EXPECT_EQ(finding.remedy.empty(), severity == Severity::ok) << finding.finding;
  }

  Patient patient;
  FakeMachine machine;
};

}  // namespace millrace::kernel::cli::doctor
