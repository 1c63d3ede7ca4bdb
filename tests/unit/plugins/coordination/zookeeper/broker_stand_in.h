// One broker's coordination on a real ZooKeeper, in the test's thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <millrace/testing/kept_log.h>

#include "kernel/env/real_environment.h"
#include "kernel/log/metrics_registry.h"
#include "plugins/coordination/zookeeper/zookeeper.h"
#include "pumped_shard.h"
#include "zookeeper_server.h"

namespace millrace::zookeeper {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto name = (std::filesystem::temp_directory_path() / "millrace-broker-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Threads that all tests of a program share.
class Outside {
 public:
  static kernel::RealEnvironment& get() {
    static Outside outside;
    return *outside.environment_;
  }

 private:
  Outside() {
    auto started = kernel::RealEnvironment::start({.shards = 1, .workers = 2},
                                                  Log(log_, "environment"), metrics_);
    if (!started) std::abort();
    environment_ = *std::move(started);
  }
  testing::KeptLog log_;
  kernel::MetricsRegistry metrics_;
  std::unique_ptr<kernel::RealEnvironment> environment_;
};

/// A server that all tests of a program share; each works below a path of its own.
inline ZooKeeperServer& shared_server() {
  static ZooKeeperServer server;
  static const bool started = [] {
    const auto running = server.start();
    const auto serving = running ? server.wait_until_serving() : running;
    if (!serving) ADD_FAILURE() << to_string(serving.error());
    return serving.has_value();
  }();
  static_cast<void>(started);
  return server;
}

inline std::string fresh_chroot() {
  static int made = 0;
  return "/case-" + std::to_string(++made);
}

class BrokerStandIn {
 public:
  BrokerStandIn(std::string servers, std::string chroot, std::int32_t id = 1) : id_(id) {
    settings.connect = {.servers = std::move(servers), .chroot = std::move(chroot)};
    settings.session_timeout = std::chrono::seconds(2);
    settings.start_timeout = std::chrono::seconds(20);
    settings.data = folder.path();
    begin();
  }
  ~BrokerStandIn() { end(); }
  BrokerStandIn(const BrokerStandIn&) = delete;
  BrokerStandIn& operator=(const BrokerStandIn&) = delete;

  void begin() { zookeeper.emplace(environment, Log(log, "coordination"), settings); }
  void end() {
    lease.reset();
    zookeeper.reset();
    control().drain();
  }

  PumpedShard& control() { return environment.control(); }
  std::string log_text() const {
    std::string text;
    for (const auto& line : log.lines()) text += line + '\n';
    return text;
  }
  template <class T>
  Result<T> run(Task<T> task) {
    return wait_for(millrace::start(control(), std::move(task)));
  }
  template <class T>
  Result<T> wait_for(Pending<T> pending) {
    if (!control().run_until([&] { return pending.is_ready(); }, std::chrono::minutes(1))) {
      return Error{Errc::timed_out, "the task does not end"};
    }
    return pending.await_resume();
  }
  Result<> join() {
    auto joined = run(zookeeper->join({.broker_id = id_}));
    if (!joined) return joined.error();
    lease = *std::move(joined);
    return {};
  }
  Result<std::vector<Version>> commit(std::vector<Write> writes) {
    return run(zookeeper->commit(std::move(writes)));
  }
  Result<Version> put(std::string key, std::string value, Version expected = any_version) {
    auto done = commit({{.key = std::move(key), .value = std::move(value), .expected = expected}});
    if (!done) return done.error();
    return done->front();
  }
  Result<std::string> get(std::string key) {
    auto got = run(zookeeper->get(std::move(key)));
    if (!got) return got.error();
    return got->value;
  }
  Result<std::vector<std::string>> list(std::string prefix) {
    return run(zookeeper->list(std::move(prefix)));
  }
  Result<Seen> next_change(std::string prefix, Seen seen) {
    return run(zookeeper->next_change(std::move(prefix), seen));
  }

  TemporaryFolder folder;
  testing::KeptLog log;
  Settings settings;
  PumpedEnvironment environment{Outside::get()};
  std::optional<ZooKeeper> zookeeper;
  std::unique_ptr<Lease> lease;

 private:
  std::int32_t id_;
};

}  // namespace millrace::zookeeper
