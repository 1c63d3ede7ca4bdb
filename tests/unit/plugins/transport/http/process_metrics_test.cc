#include "plugins/transport/http/process_metrics.h"

#include <algorithm>

#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace::http_transport {
namespace {

class ProcessMetricsTest : public ::testing::Test {
 protected:
  void write(const std::string& path, std::string_view text) {
    auto& files = node.files();
    ASSERT_TRUE(files.make_folders(path.substr(0, path.rfind('/'))));
    const auto file = files.open(path, OpenMode::create);
    ASSERT_TRUE(file);
    const Bytes bytes = as_bytes(text);
    ASSERT_TRUE((*file)->write_at(0, std::span(&bytes, 1)));
  }
  /// The value of a family; -1 when there is none.
  double value(std::string_view name) {
    const auto families = process_metrics(node.files());
    const auto found = std::ranges::find(families, name, &MetricFamily::name);
    return found == families.end() ? -1 : found->samples.at(0).value;
  }

  testing::SimWorld world{1};
  testing::SimEnvironment& node = world.add_node("b1");
};

TEST_F(ProcessMetricsTest, WithoutProcThereAreNone) {
  EXPECT_TRUE(process_metrics(node.files()).empty());
}

TEST_F(ProcessMetricsTest, ReadsWhatTheKernelTells) {
  write(
      "/proc/self/stat",
      "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 7 0 1234 99999 500 18446744");
  write("/proc/self/status", "Name:\tx\nVmSize:\t    2048 kB\nVmRSS:\t    1024 kB\n");
  write("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max open files            4096                 524288               files     \n");
  write("/proc/stat", "cpu  1 2 3\nbtime 1700000000\nprocesses 5\n");
  write("/proc/self/fd/0", "");
  write("/proc/self/fd/1", "");

  EXPECT_EQ(value("process_cpu_seconds_total"), 3.0);
  EXPECT_EQ(value("process_threads"), 7);
  EXPECT_EQ(value("process_start_time_seconds"), 1700000012.34);
  EXPECT_EQ(value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_EQ(value("process_virtual_memory_bytes"), 2 << 20);
  EXPECT_EQ(value("process_max_fds"), 4096);
  EXPECT_EQ(value("process_open_fds"), 2);
}

TEST_F(ProcessMetricsTest, WhatCannotBeReadIsLeftOut) {
  write("/proc/self/stat", "42 (x");
  write("/proc/self/limits", "Max open files            unlimited            unlimited  files\n");
  EXPECT_EQ(value("process_cpu_seconds_total"), -1);
  EXPECT_EQ(value("process_max_fds"), -1);
}

}  // namespace
}  // namespace millrace::http_transport
