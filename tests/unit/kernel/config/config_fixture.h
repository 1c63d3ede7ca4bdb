// Writes configuration files into a temporary folder and checks them against plugins that exist
// only as tables of options.
#pragma once

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/config/config.h"

namespace millrace::kernel {

inline constexpr MillraceOption end_of_options = {};

inline constexpr MillraceOption kafka_options[] = {
    {"listen", MILLRACE_OPTION_TEXT, nullptr, "127.0.0.1:9092", unbounded_min, unbounded_max,
     nullptr, "Address to listen on.", 0},
    {"idle", MILLRACE_OPTION_INTEGER, "ms", "600000", 1, 86'400'000, nullptr, "Idle deadline.", 0},
    {"strict", MILLRACE_OPTION_BOOLEAN, nullptr, "false", unbounded_min, unbounded_max, nullptr,
     "Refuses more.", MILLRACE_OPTION_RELOADABLE},
    {"share", MILLRACE_OPTION_NUMBER, nullptr, "0.5", 0, 4, nullptr, "A share.", 0},
    {"allow", MILLRACE_OPTION_TEXTS, nullptr, "a, b", unbounded_min, unbounded_max, nullptr,
     "Who may.", 0},
    {"max.peers", MILLRACE_OPTION_INTEGER, nullptr, "9", 1, 99, nullptr, "How many.", 0},
    {"password", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max,
     "long|longer", "A secret.", MILLRACE_OPTION_SECRET},
    end_of_options};

inline constexpr MillraceOption filelog_options[] = {
    {"sync", MILLRACE_OPTION_TEXT, nullptr, "none", unbounded_min, unbounded_max, "none|always",
     "When to sync.", 0},
    end_of_options};

inline constexpr MillraceOption zookeeper_options[] = {
    {"connect", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max, nullptr,
     "Where ZooKeeper is.", MILLRACE_OPTION_REQUIRED},
    end_of_options};

inline constexpr MillraceOption kafka_defaults[] = {
    {"num.partitions", MILLRACE_OPTION_INTEGER, nullptr, "1", 1, 100'000, nullptr, "Partitions.",
     0},
    {"retention.ms", MILLRACE_OPTION_INTEGER, "ms", nullptr, -1,
     std::numeric_limits<std::int64_t>::max(), nullptr, "Retention.", 0},
    {"auto.create.topics.enable", MILLRACE_OPTION_BOOLEAN, nullptr, "true", unbounded_min,
     unbounded_max, nullptr, "Creates topics.", 0},
    end_of_options};

inline constexpr MillraceOption topic_settings[] = {
    {"retention.ms", MILLRACE_OPTION_INTEGER, "ms", nullptr, -1,
     std::numeric_limits<std::int64_t>::max(), nullptr, "Retention.", 0},
    {"preallocate", MILLRACE_OPTION_BOOLEAN, nullptr, nullptr, unbounded_min, unbounded_max,
     nullptr, "Preallocates.", 0},
    end_of_options};

inline constexpr MillraceOption nothing[] = {end_of_options};

inline const MillraceOption* options_of(const std::string& plugin) {
  if (plugin == "kafka") return kafka_options;
  if (plugin == "filelog" || plugin == "accounts") return filelog_options;
  if (plugin == "zookeeper") return zookeeper_options;
  return plugin == "absent" ? nullptr : nothing;
}

class ConfigFixture : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "millrace-config-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Writes FOLDER/name and answers its path.
  std::string write(const std::string& name, const std::string& text) const {
    const auto path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  /// Loads and checks.
  std::expected<Settings, ConfigErrors> check(const ConfigSource& source) const {
    auto config = Config::load(source);
    if (!config) return std::unexpected(config.error());
    std::vector<DeclaredPlugin> plugins;
    for (auto& request : config->plugins(codecs_found_, services_found_)) {
      const auto* options = options_of(request.plugin);
      plugins.push_back({std::move(request), options});
    }
    std::vector<DeclaredStep> steps;
    for (auto& request : config->stream_steps()) {
      const auto* options = options_of(request.plugin.plugin);
      steps.push_back({std::move(request), options});
    }
    return config->check(plugins, kafka_defaults, topic_settings, steps);
  }

  /// The lines of everything that is wrong, without the folder's name; none when nothing is.
  std::vector<std::string> problems(const ConfigSource& source) const {
    const auto settings = check(source);
    std::vector<std::string> lines;
    if (settings) return lines;
    for (const auto& error : settings.error()) {
      auto line = to_string(error);
      for (auto at = line.find(folder_ + '/'); at != std::string::npos;
           at = line.find(folder_ + '/')) {
        line.erase(at, folder_.size() + 1);
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }
  std::vector<std::string> problems_in(const std::string& text) const {
    return problems({.path = write("millrace.toml", text), .sets = {}});
  }
  std::vector<std::string> problems_of_set(const std::string& set) const {
    return problems({.path = "", .sets = {set}});
  }

  std::string folder_;
  std::vector<std::string> codecs_found_ = {"gzip", "zstd"};
  std::vector<std::string> services_found_;
};

}  // namespace millrace::kernel
