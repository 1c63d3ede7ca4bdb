// A data directory on disk with one partition, made of batches, for the verbs of `millrace log`.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/bytes.h>
#include <millrace/filelog/index.h>
#include <millrace/filelog/names.h>
#include <millrace/testing/storage_subject.h>

#include "kernel/cli/log_check.h"
#include "kernel/cli/log_place.h"
#include "kernel/env/posix_file_system.h"
#include "tests/unit/kernel/env/environment_fixture.h"

namespace millrace::kernel::cli {

inline constexpr std::int32_t records_of_batch = 3;

class LogFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(partition());
    write(data_ / "meta.properties", "version=1\n");
  }

  std::string partition() const { return data_ / "orders-0"; }
  std::string log(std::int64_t base) const {
    return partition() + "/" + filelog::offset_name({base}, filelog::log_suffix);
  }

  /// Batches of three records and leader epoch 3; each begins where the one before ends.
  static std::string batches(std::int64_t base, int count) {
    constexpr std::size_t epoch_at = 12;
    std::string bytes;
    for (int at = 0; at < count; ++at) {
      const auto batch = testing::make_batch({base + std::int64_t{at} * records_of_batch},
                                             records_of_batch, {1000 + base + at}, 40);
      std::string text(batch.text());
      store_be(reinterpret_cast<std::byte*>(text.data()) + epoch_at, std::int32_t{3});
      bytes += text;
    }
    return bytes;
  }
  static std::size_t batch_bytes() { return batches(0, 1).size(); }

  static void write(const std::string& path, std::string_view content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void flip(const std::string& path, std::size_t at, unsigned char bits = 0xff) {
    auto bytes = content(path);
    bytes.at(at) = static_cast<char>(static_cast<unsigned char>(bytes.at(at)) ^ bits);
    write(path, bytes);
  }
  /// A checkpoint file with this partition's offset.
  void checkpoint(std::string_view name, std::int64_t offset) {
    write(data_ / name, "0\n1\norders 0 " + std::to_string(offset) + "\n");
  }

  LogPlace place() {
    auto found = find_places(files_, {data_.path()});
    EXPECT_TRUE(found) << found.error().detail;
    return std::move(found->front());
  }
  PartitionFolder folder() {
    auto found = look_at_folder(files_, partition());
    EXPECT_TRUE(found) << found.error().detail;
    return *std::move(found);
  }
  PartitionReport check() { return check(place().directory); }
  PartitionReport check(const DataDirectory& directory) {
    auto report = check_partition(files_, directory, folder(), {});
    EXPECT_TRUE(report) << report.error().detail;
    return *std::move(report);
  }
  /// Of the first one that is wrong.
  static Finding wrong_in(const PartitionReport& report) {
    for (const auto& finding : report.findings) {
      if (finding.kind != FindingKind::note) return finding;
    }
    ADD_FAILURE() << "nothing is wrong";
    return {};
  }

  TemporaryFolder data_;
  PosixFileSystem files_;
};

}  // namespace millrace::kernel::cli
