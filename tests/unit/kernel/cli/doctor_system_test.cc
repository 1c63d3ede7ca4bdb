// The process, its memory and the clock.
#include "doctor_fixture.h"

namespace millrace::kernel::cli::doctor {
namespace {

using DoctorSystemTest = DoctorTest;

TEST_F(DoctorSystemTest, TheBrokerIsFoundByItsLockOrBySystemd) {
  const auto found = [this] { return find_broker("/data/millrace", machine); };
  EXPECT_FALSE(found());
  machine.files["/proc/42/comm"] = "millraced\n";
  machine.files["/proc/42/status"] = "Uid:\t100\t100\t100\t100\nGid:\t101\t1\nGroups:\t7 8 \n";
  machine.files["/sys/fs/cgroup/system.slice/millrace.service/cgroup.procs"] = "42\n";
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->pid, 42U);
  EXPECT_EQ(found()->user, 100U);
  EXPECT_THAT(found()->groups, testing::ElementsAre(101U, 7U, 8U));
  machine.files["/data/millrace/.lock"] = "43\n";
  machine.files["/proc/43/comm"] = "bash\n";  // the number was given to another
  EXPECT_EQ(found()->pid, 42U);
  machine.files["/proc/43/comm"] = "millraced\n";
  EXPECT_EQ(found()->pid, 43U);
  EXPECT_EQ(found()->found_by, "/data/millrace/.lock");
  machine.files.erase("/data/millrace/.lock");  // as of a storage that keeps nothing there
  machine.files["/data/millrace/coordination.lock"] = "43\n";
  EXPECT_EQ(found()->found_by, "/data/millrace/coordination.lock");
}

TEST_F(DoctorSystemTest, TheServiceRunsAsTheBrokerDoesOrAsThePackageSays) {
  machine.files["/etc/passwd"] =
      "root:x:0:0::/root:/bin/sh\nmillrace:x:100:101::/:/bin/false\nanna:x:1000:1001:::\n";
  EXPECT_EQ(service_user("anna", patient.broker, machine).id, 1000U);
  EXPECT_EQ(service_user("", patient.broker, machine).name, "millrace");
  patient.broker->user = 77;
  EXPECT_EQ(service_user("", patient.broker, machine).name, "number 77");
  EXPECT_EQ(service_user("", std::nullopt, machine).name, "millrace");
  machine.runs_as = 1000;
  EXPECT_EQ(service_user("", std::nullopt, machine).name, "anna");
  EXPECT_THAT(service_user("", std::nullopt, machine).groups, testing::ElementsAre(1001U));
}

TEST_F(DoctorSystemTest, ABrokerThatDoesNotRunIsSaid) {
  expect(&check_process, ok, "process 4711");
  patient.broker.reset();
  expect(&check_process, warning, "no broker runs here");
}

TEST_F(DoctorSystemTest, TheLimitOfOpenFilesIsComparedWithWhatTheConfigurationAllows) {
  const auto limit = [this](const std::string& text) {
    machine.files["/proc/4711/limits"] =
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max processes             5                    5                    processes \n"
        "Max open files            " +
        text + "                 1048576              files     \n";
  };
  machine.folders["/data/millrace"] = {"orders-0", "orders-1", ".lock"};
  machine.folders["/data/millrace/orders-0"] = {"0.log", "0.index", "9.log", "9.index"};
  machine.folders["/data/millrace/orders-1"] = {"0.log"};
  machine.folders["/proc/4711/fd"] = {"0", "1", "2"};
  limit("10073");  // 3 segments of 3 files, 10000 connections, 64 of its own
  expect(&check_open_files, ok, "at most 10073 of 3 segments");
  limit("unlimited");
  expect(&check_open_files, ok, "high enough");
  limit("10072");
  expect(&check_open_files, warning, "needs more open files than the limit");
  breaks("storage.open_files_max", "2");
  expect(&check_open_files, ok, "at most 10070");
  limit("20000");
  machine.folders["/proc/4711/fd"].resize(16'001);
  expect(&check_open_files, warning, "nearly out of open files");
  machine.folders["/proc/4711/fd"].resize(19'936);
  expect(&check_open_files, problem, "open now: 19936");
  machine.denied.insert("/proc/4711/fd");
  expect(&check_open_files, ok, "not to be seen by this user");
  machine.denied.insert("/proc/4711/limits");
  expect(&check_open_files, warning, "Permission denied");
  patient.broker.reset();
  EXPECT_TRUE(check_open_files(patient, machine).empty());
}

TEST_F(DoctorSystemTest, MappedAreasAreLimited) {
  EXPECT_TRUE(check_map_count(patient, machine).empty());
  machine.files["/proc/sys/vm/max_map_count"] = "65530\n";
  expect(&check_map_count, ok, "max_map_count: 65530");
  machine.files["/proc/sys/vm/max_map_count"] = "65529\n";
  expect(&check_map_count, warning, "few more");
  machine.files["/proc/sys/vm/max_map_count"] = "100000\n";
  for (int line = 0; line <= 80'000; ++line) machine.files["/proc/4711/maps"] += "x\n";
  expect(&check_map_count, warning, "the broker has 80001");
}

TEST_F(DoctorSystemTest, BrokerMemoryIsComparedWithTheMachine) {
  struct Case {
    std::uint64_t wanted;
    std::uint64_t total;
    std::uint64_t available;
    bool runs;
    Severity severity;
  };
  constexpr std::uint64_t mega = 1 << 20;
  const Case cases[] = {
      {256, 1024, 100, true, ok},        {256, 1024, 100, false, warning},
      {256, 1024, 512, false, ok},       {256, 1024, 511, false, warning},
      {512, 1024, 1000, false, ok},      {513, 1024, 1000, true, warning},
      {1024, 1024, 1000, true, problem},
  };
  for (const auto& [wanted, total, available, runs, severity] : cases) {
    breaks("broker.memory", std::to_string(wanted * mega));
    machine.files["/proc/meminfo"] = "MemTotal: " + std::to_string(total * 1024) +
                                     " kB\nMemAvailable: " + std::to_string(available * 1024) +
                                     " kB\n";
    const auto running = patient.broker;
    if (!runs) patient.broker.reset();
    SCOPED_TRACE(testing::Message() << wanted << " of " << total << ", " << available << " left");
    expect(&check_memory, severity, "broker.memory ");
    patient.broker = running;
  }
  machine.files["/proc/meminfo"] = "MemTotal: 1 kB\n";
  expect(&check_memory, warning, "could not be found out");
}

TEST_F(DoctorSystemTest, TheLeastLimitOfTheControlGroupsCounts) {
  constexpr std::uint64_t wanted = std::uint64_t{512} << 20;  // and 256 MiB beside broker.memory
  machine.files["/proc/4711/cgroup"] = "0::/system.slice/millrace.service\n";
  expect(&check_memory_limit, ok, "no limit");
  machine.files["/sys/fs/cgroup/system.slice/millrace.service/memory.max"] = "max\n";
  expect(&check_memory_limit, ok, "no limit");
  const auto limit = [this](std::uint64_t bytes) {
    machine.files["/sys/fs/cgroup/system.slice/memory.max"] = std::to_string(bytes) + "\n";
  };
  limit(2 * wanted);
  expect(&check_memory_limit, ok, "/sys/fs/cgroup/system.slice/memory.max: 1.0 GiB");
  limit(2 * wanted - 1);
  expect(&check_memory_limit, warning, "little for the page cache");
  limit(wanted - 1);
  expect(&check_memory_limit, problem, "less than the broker may take");
  // The older generation, as containers still have it.
  machine.files["/proc/4711/cgroup"] = "4:memory:/box/1\n3:cpu:/box/1\n";
  machine.files["/sys/fs/cgroup/memory/box/1/memory.limit_in_bytes"] = "1000\n";
  expect(&check_memory_limit, problem, "/sys/fs/cgroup/memory/box/1/memory.limit_in_bytes");
  machine.files["/sys/fs/cgroup/memory/box/1/memory.limit_in_bytes"] = "9223372036854771712\n";
  expect(&check_memory_limit, ok, "no limit");
}

TEST_F(DoctorSystemTest, SwappingIsSaidWhereThereIsSwap) {
  machine.files["/proc/sys/vm/swappiness"] = "60\n";
  expect(&check_swap, ok, "swappiness: 60");
  machine.files["/proc/meminfo"] = "SwapTotal: 1024 kB\n";
  expect(&check_swap, warning, "swap 1.0 MiB");
  machine.files["/proc/sys/vm/swappiness"] = "10\n";
  expect(&check_swap, ok, "swappiness: 10");
}

TEST_F(DoctorSystemTest, PressureIsToldOfMemoryAndDisk) {
  EXPECT_TRUE(check_pressure(patient, machine).empty());  // an older kernel
  machine.files["/proc/pressure/memory"] =
      "some avg10=90.00 avg60=9.99 avg300=0.00 total=1\nfull avg10=0 avg60=1.50 avg300=0 total=1\n";
  expect(&check_pressure, ok, "some tasks waited 9 %, all 1 %");
  machine.files["/proc/pressure/memory"] = "some avg10=0.00 avg60=10.00 avg300=0.00 total=1\n";
  expect(&check_pressure, warning, "memory is short");
  machine.files.erase("/proc/pressure/memory");
  machine.files["/proc/pressure/io"] = "some avg10=0.00 avg60=55.10 avg300=0.00 total=1\n";
  expect(&check_pressure, warning, "tasks wait for the disk");
  EXPECT_EQ(only(&check_pressure).check, "pressure.io");
}

TEST_F(DoctorSystemTest, ADiskThatDoesNotKeepUpIsSaid) {
  const auto dirty = [this](int megabytes) {
    machine.files["/proc/meminfo"] =
        "MemAvailable: 1024000 kB\nDirty: " + std::to_string(megabytes * 1024) +
        " kB\nWriteback: 1024 kB\n";
  };
  machine.files["/proc/sys/vm/dirty_ratio"] = "20\n";  // of 1000 MiB
  dirty(150);
  expect(&check_dirty_pages, ok, "151.0 MiB to be written; from 200.0 MiB on");
  dirty(160);
  expect(&check_dirty_pages, warning, "does not keep up");
  machine.files["/proc/sys/vm/dirty_bytes"] = "1073741824\n";
  expect(&check_dirty_pages, ok, "vm.dirty_bytes");
}

TEST_F(DoctorSystemTest, TheClockMustBeKeptRight) {
  expect(&check_clock, ok, "by 3 ms at most");
  machine.time = ClockFacts{true, std::chrono::milliseconds(501)};
  expect(&check_clock, warning, "wrong by much");
  machine.time = ClockFacts{false, {}};
  expect(&check_clock, warning, "nothing keeps the clock right");
  machine.time = Error{Errc::io, "adjtimex: Function not implemented"};
  expect(&check_clock, warning, "not implemented");
}

}  // namespace
}  // namespace millrace::kernel::cli::doctor
