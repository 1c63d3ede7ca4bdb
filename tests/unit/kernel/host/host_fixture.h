// What tests of the plugin host share: where the test plugins are, a log that remembers, and
// services that nobody may call.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/environment.h>

#include "kernel/host/plugin_host.h"

namespace millrace::kernel {

inline std::string bad_plugin(const std::string& name) {
  return std::string(MILLRACE_TEST_PLUGIN_DIR) + "/bad/compression/" + name + ".so";
}
inline std::string good_plugin(const std::string& name) {
  return std::string(MILLRACE_TEST_PLUGIN_DIR) + "/good/compression/" + name + ".so";
}

/// What the probes of the bad plugins left behind.
class Probe {
 public:
  Probe() {
    ::unsetenv("MILLRACE_PROBE_LOADED");
    ::unsetenv("MILLRACE_PROBE_CALLED");
  }
  static bool loaded() { return std::getenv("MILLRACE_PROBE_LOADED") != nullptr; }
  static bool called() { return std::getenv("MILLRACE_PROBE_CALLED") != nullptr; }
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = testing::TempDir() + "millrace-host-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::string write(const std::string& name, const std::string& content) const {
    const auto file = path_ + '/' + name;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  std::string copy(const std::string& from, const std::string& name) const {
    std::ifstream file(from, std::ios::binary);
    return write(name, {std::istreambuf_iterator<char>(file), {}});
  }

 private:
  std::string path_;
};

/// Lines as "subsystem: message name=value".
class RememberingLog final : public LogSink {
 public:
  bool wants(LogLevel, std::string_view) const noexcept override { return true; }
  void write(LogLevel, std::string_view subsystem, std::string_view message,
             std::initializer_list<LogField> fields) noexcept override {
    auto line = std::string(subsystem) + ": " + std::string(message);
    for (const auto& field : fields) line += ' ' + std::string(field.name) + '=' + field.value;
    lines.push_back(std::move(line));
  }

  std::vector<std::string> lines;
};

class UnusedMetrics final : public Metrics {
 public:
  Counter& counter(std::string_view, std::string_view) override { throw unused(); }
  Gauge& gauge(std::string_view, std::string_view) override { throw unused(); }
  Counter& counter(std::string_view, std::string_view, MetricLabels) override { throw unused(); }
  Gauge& gauge(std::string_view, std::string_view, MetricLabels) override { throw unused(); }
  Histogram& histogram(std::string_view, std::string_view, MetricLabels) override {
    throw unused();
  }
  std::vector<MetricFamily> read() const override { throw unused(); }

 private:
  static std::logic_error unused() { return std::logic_error("no test plugin uses metrics"); }
};

class UnusedEnvironment final : public Environment {
 public:
  Clock& clock() noexcept override { std::abort(); }
  Random& random() noexcept override { std::abort(); }
  Network& network() noexcept override { std::abort(); }
  FileSystem& files() noexcept override { std::abort(); }
  BlockingPool& workers() noexcept override { std::abort(); }
  std::span<Shard* const> shards() noexcept override { std::abort(); }
  Shard& control() noexcept override { std::abort(); }
};

inline constexpr MillraceOption no_defaults[] = {MillraceOption{}};

/// Loads `text` with the good test plugins (or those in `plugins`) in the search path.
inline std::expected<Plan, ConfigErrors> plan_of(
    const std::string& text, const std::string& plugins = MILLRACE_TEST_PLUGIN_DIR "/good") {
  const TemporaryFolder folder;
  const auto path = folder.write("millrace.toml", text);
  const ConfigSource source{.path = path, .sets = {"plugins.path=[\"" + plugins + "\"]"}};
  auto config = Config::load(source);
  if (!config) return std::unexpected(config.error());
  auto plan = make_plan(*config, no_defaults, no_defaults);
  if (plan) return plan;
  for (auto& error : plan.error()) {
    if (error.place.source == path) error.place.source = "millrace.toml";
  }
  return plan;
}

inline std::vector<std::string> lines_of(const ConfigErrors& errors) {
  std::vector<std::string> lines;
  for (const auto& error : errors) lines.push_back(to_string(error));
  return lines;
}

}  // namespace millrace::kernel
