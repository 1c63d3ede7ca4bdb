// The files of configs/: they make a plan with the shipped plugins, and millrace.toml shows every
// option of kernel and plugins with its real default.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/host/plan.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {
namespace {

const std::string configs = MILLRACE_CONFIGS_DIR;
const std::string packaged = configs + "/millrace.toml";

std::expected<Plan, ConfigErrors> plan_of(const ConfigSource& source) {
  auto config = Config::load(source);
  if (!config) return std::unexpected(config.error());
  return make_plan(*config, broker_defaults(), topic_table_settings());
}

/// The lines of `path`; those that are an option commented out, `#name = value`, without the mark.
std::vector<std::string> uncommented(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    const bool option = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    lines.push_back(option ? line.substr(1) : line);
  }
  return lines;
}

/// The embedded default with every option of the packaged file set by hand.
std::expected<Plan, ConfigErrors> plan_of_uncommented() {
  const auto path = testing::TempDir() + "millrace-uncommented.toml";
  std::ofstream file(path);
  for (const auto& line : uncommented(packaged)) file << line << '\n';
  file.close();
  return plan_of({.path = path, .sets = {}});
}

TEST(ConfigsTest, EveryFileMakesAPlan) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    const auto plan = plan_of({.path = entry.path().string(), .sets = {}});
    EXPECT_TRUE(plan) << to_error(plan.error()).detail;
    ++files;
  }
  EXPECT_GE(files, 2);
}

TEST(ConfigsTest, WhatThePackagedFileShowsIsTheDefault) {
  const auto shown = plan_of_uncommented();
  ASSERT_TRUE(shown) << to_error(shown.error()).detail;
  const auto embedded = plan_of({});
  ASSERT_TRUE(embedded) << to_error(embedded.error()).detail;

  EXPECT_EQ(shown->broker.id, embedded->broker.id);
  EXPECT_EQ(shown->broker.data, embedded->broker.data);
  EXPECT_EQ(shown->broker.rack, embedded->broker.rack);
  EXPECT_EQ(shown->broker.shards, embedded->broker.shards);
  EXPECT_EQ(shown->broker.memory_bytes, embedded->broker.memory_bytes);
  EXPECT_EQ(shown->log.level, embedded->log.level);
  EXPECT_EQ(shown->log.format, embedded->log.format);
  EXPECT_EQ(shown->log.levels, embedded->log.levels);
  ASSERT_EQ(shown->plugins.size(), embedded->plugins.size());
  for (std::size_t at = 0; at < shown->plugins.size(); ++at) {
    EXPECT_EQ(shown->plugins[at].library.path, embedded->plugins[at].library.path);
    EXPECT_EQ(shown->plugins[at].options.all(), embedded->plugins[at].options.all());
  }
}

// Real numbers are written in more ways than one: 1E308 and 1e+308.
bool is_same_number(const std::string& one, const std::string& other) {
  const auto number = [](const std::string& text) -> std::optional<double> {
    char* end = nullptr;
    const auto value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return {};
    return value;
  };
  const auto value = number(one);
  return value && value == number(other);
}

TEST(ConfigsTest, DefaultsThatThePackagedFileShowsAreThoseOfTheTable) {
  const auto shown = plan_of_uncommented();
  ASSERT_TRUE(shown) << to_error(shown.error()).detail;
  EXPECT_GT(shown->defaults.size(), 20U);
  for (const auto* option = broker_defaults(); option->name != nullptr; ++option) {
    const auto found = shown->defaults.find(option->name);
    if (found == shown->defaults.end()) continue;
    if (is_same_number(found->second, option->default_value)) continue;
    EXPECT_EQ(found->second, option->default_value) << option->name;
  }
}

/// "table.name" of every option that a file sets, names without quotes.
std::set<std::string> keys_in(const std::vector<std::string>& lines) {
  std::set<std::string> keys;
  std::string table;
  for (const auto& line : lines) {
    if (line.starts_with('[')) {
      table = line.substr(1, line.find(']') - 1);
    } else if (const auto equals = line.find(" = ");
               !line.starts_with('#') && equals != line.npos) {
      auto name = line.substr(0, equals);
      std::erase(name, '"');
      keys.insert(table + '.' + name);
    }
  }
  return keys;
}

TEST(ConfigsTest, ThePackagedFileShowsEveryOptionThatHasADefault) {
  auto option_tables = kernel_options();
  const auto plan = plan_of({});
  ASSERT_TRUE(plan) << to_error(plan.error()).detail;
  for (const auto& [request, library, options, places] : plan->plugins) {
    const bool single = request.kind == "storage" || request.kind == "coordination";
    const auto table = single ? request.kind : request.kind + '.' + request.instance;
    option_tables.push_back({table, library.descriptor->options});
  }
  const auto shown = keys_in(uncommented(packaged));
  for (const auto& table : option_tables) {
    // Of instances there are none by default.
    if (table.table.starts_with("stream.NAME")) continue;
    for (const auto* option = table.options; option->name != nullptr; ++option) {
      if (option->default_value == nullptr) continue;
      const auto key = table.table + '.' + option->name;
      EXPECT_TRUE(shown.contains(key)) << key << " is not in " << packaged;
    }
  }
}

}  // namespace
}  // namespace millrace::kernel
