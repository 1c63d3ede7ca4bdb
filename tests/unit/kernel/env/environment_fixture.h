// A running environment, its log kept, and a folder of its own.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "kernel/env/block_on.h"
#include "kernel/env/real_environment.h"
#include "kernel/log/metrics_registry.h"

namespace millrace::kernel {

class KeptLog final : public LogSink {
 public:
  bool wants(LogLevel, std::string_view) const noexcept override { return true; }
  void write(LogLevel, std::string_view, std::string_view message,
             std::initializer_list<LogField> fields) noexcept override {
    std::string line(message);
    for (const auto& field : fields) line += " " + std::string(field.name) + "=" + field.value;
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto name = (std::filesystem::temp_directory_path() / "millrace-env-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class EnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started =
        RealEnvironment::start({.shards = 2, .workers = 2}, Log(log_, "environment"), metrics_);
    ASSERT_TRUE(started) << started.error().detail;
    environment_ = *std::move(started);
  }

  RealEnvironment& environment() { return *environment_; }
  Shard& shard(std::size_t at = 0) { return *environment_->shards()[at]; }

  KeptLog log_;
  MetricsRegistry metrics_;
  TemporaryFolder folder_;
  std::unique_ptr<RealEnvironment> environment_;
};

/// Every wait of a test ends: by what it waits for, or by this.
inline constexpr Duration patience = std::chrono::seconds(20);

/// block_on with a deadline.
template <class F>
auto run(Shard& shard, F make) {
  return block_on(shard,
                  [make = std::move(make)]() mutable { return with_deadline(make(), patience); });
}

}  // namespace millrace::kernel
