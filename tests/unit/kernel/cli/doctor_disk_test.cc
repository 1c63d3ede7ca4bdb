#include "doctor_fixture.h"

namespace millrace::kernel::cli::doctor {
namespace {

using DoctorDiskTest = DoctorTest;

TEST_F(DoctorDiskTest, AFolderOfTheServiceIsWell) {
  expect(&check_data_folder, ok, "/data/millrace: owner 100, group 101, rwxr-x---");
}

TEST_F(DoctorDiskTest, TheServiceMustBeAbleToWriteIntoTheFolder) {
  struct Case {
    FileFacts folder;
    Severity severity;
  };
  const Case cases[] = {
      {{true, 100, 101, 0700}, ok},       {{true, 100, 101, 0500}, problem},
      {{true, 0, 101, 0770}, ok},         {{true, 0, 101, 0750}, problem},
      {{true, 0, 0, 0777}, ok},           {{true, 0, 0, 0755}, problem},
      {{true, 100, 101, 0600}, problem},  // it may not be entered
      {{false, 100, 101, 0700}, problem},
  };
  for (const auto& [folder, severity] : cases) {
    machine.facts["/data/millrace"] = folder;
    SCOPED_TRACE(testing::Message() << std::oct << folder.mode << " of " << folder.owner);
    expect(&check_data_folder, severity, "/data/millrace");
  }
  patient.user = {"root", 0, {0}};
  machine.facts["/data/millrace"] = {true, 5, 5, 0500};
  expect(&check_data_folder, ok, "root may write");
}

TEST_F(DoctorDiskTest, TheWayToTheFolderMustBeOpen) {
  machine.facts["/data"] = {true, 0, 0, 0700};
  expect(&check_data_folder, problem, "may not reach /data/millrace | /data: owner 0");
}

TEST_F(DoctorDiskTest, AFolderThatIsMissingIsMadeWhereThatCanBe) {
  machine.facts.erase("/data/millrace");
  expect(&check_data_folder, problem, "user millrace may not make it | /data: owner 0");
  EXPECT_EQ(only(&check_data_folder).remedy, "install -d -o millrace -m 0750 /data/millrace");
  machine.facts["/data"] = {true, 100, 101, 0755};
  expect(&check_data_folder, ok, "is made at the first start");
}

TEST_F(DoctorDiskTest, AFolderThatCannotBeLookedAtIsSaidSo) {
  machine.denied.insert("/data/millrace");
  expect(&check_data_folder, warning, "Permission denied");
}

TEST_F(DoctorDiskTest, FreeSpaceIsComparedWithTheDisk) {
  constexpr std::uint64_t giga = 1UL << 30;
  struct Case {
    VolumeFacts space;
    Severity severity;
    const char* said;
  };
  const Case cases[] = {
      {{100 * giga, 50 * giga, 0, 0}, ok, "50.0 GiB free of 100.0 GiB (50 %)"},
      {{100 * giga, 10 * giga, 0, 0}, ok, "(10 %)"},
      {{100 * giga, 9 * giga, 0, 0}, warning, "nearly full"},
      {{100 * giga, 67108865, 0, 0}, warning, "nearly full"},
      {{100 * giga, 67108864, 0, 0}, problem, "64.0 MiB, is kept for storage.reserve_bytes"},
      {{64 << 20, 1 << 20, 0, 0}, problem, "1.0 MiB, is kept"},  // a 64th of a small disk
      {{64 << 20, 2 << 20, 0, 0}, warning, "nearly full"},
      {{0, 0, 0, 0}, warning, "could not be found out"},
  };
  for (const auto& [space, severity, said] : cases) {
    machine.space = space;
    expect(&check_space, severity, said);
  }
  machine.space = Error{Errc::io, "space of /data: Input/output error"};
  expect(&check_space, warning, "Input/output error");
}

TEST_F(DoctorDiskTest, RetentionIsComparedWithTheDisk) {
  expect(&check_retention, ok, "by time alone");
  breaks("defaults.\"log.retention.bytes\"", "10737418240");  // and a segment of 1 GiB
  machine.folders["/data/millrace"] = {"orders-0", "orders-1", ".lock", "meta.properties", "a-b"};
  machine.space = VolumeFacts{22UL << 30, 1UL << 30, 0, 0};
  expect(&check_retention, ok, "2 partitions, each up to 11.0 GiB");
  machine.space = VolumeFacts{21UL << 30, 1UL << 30, 0, 0};
  expect(&check_retention, warning, "more than the disk has");
  machine.folders["/data/millrace"].clear();
  expect(&check_retention, ok, "0 partitions");
}

TEST_F(DoctorDiskTest, TheFileSystemIsToldByTheMountThatTheFolderIsOn) {
  struct Case {
    const char* mount;
    Severity severity;
    const char* said;
  };
  const Case cases[] = {
      {"2 1 8:2 / /data rw,noatime - xfs /dev/sdb1 rw", ok, "on xfs"},
      {"2 1 8:2 / /data/millrace rw - btrfs /dev/sdb1 rw", ok, "on btrfs"},
      {"2 1 8:2 / /data/mill rw - nfs4 other:/x rw", ok, "on ext4"},  // another folder
      {"2 1 0:5 / /data rw shared:1 - nfs4 other:/x rw", warning, "a network file system"},
      {"2 1 0:5 / /data rw - cifs //other/x rw", warning, "a network file system"},
      {"2 1 0:5 / /data rw - fuse.sshfs x: rw", warning, "a network file system"},
      {"2 1 0:5 / /data rw - tmpfs tmpfs rw", warning, "gone after a restart"},
      {"2 1 0:5 / /data rw - overlay overlay rw", warning, "a container's own layer"},
  };
  for (const auto& [mount, severity, said] : cases) {
    machine.files["/proc/self/mountinfo"] =
        std::string("1 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n") + mount + "\n";
    SCOPED_TRACE(mount);
    expect(&check_file_system, severity, said);
  }
  machine.files["/proc/self/mountinfo"] = "nothing of use\n";
  expect(&check_file_system, warning, "could not be found out");
}

TEST_F(DoctorDiskTest, OptionsOfTheMountThatHurtAreSaid) {
  struct Case {
    const char* options;
    const char* of_the_disk;
    Severity severity;
  };
  const Case cases[] = {
      {"ro,relatime", "rw", problem},
      {"rw", "ro,errors=remount-ro", problem},
      {"rw,sync", "rw", warning},
      {"rw,strictatime", "rw", warning},
  };
  for (const auto& [options, of_the_disk, severity] : cases) {
    machine.files["/proc/self/mountinfo"] =
        std::string("2 1 8:2 / /data ") + options + " - xfs /dev/sdb1 " + of_the_disk + "\n";
    const auto findings = check_file_system(patient, machine);
    ASSERT_EQ(findings.size(), 2U) << options;
    EXPECT_EQ(findings.back().check, "disk.mount");
    EXPECT_EQ(findings.back().severity, severity) << options;
    EXPECT_FALSE(findings.back().remedy.empty());
  }
}

TEST_F(DoctorDiskTest, InodesRunOutToo) {
  struct Case {
    std::uint64_t left;
    Severity severity;
  };
  for (const auto& [left, severity] :
       {Case{100'000, ok}, {99'999, warning}, {100, warning}, {99, problem}}) {
    machine.space = VolumeFacts{1UL << 40, 1UL << 39, 1'000'000, left};
    expect(&check_inodes, severity, std::to_string(left) + " of 1000000 inodes");
  }
  machine.space = VolumeFacts{1UL << 40, 1UL << 39, 0, 0};
  EXPECT_TRUE(check_inodes(patient, machine).empty());
}

}  // namespace
}  // namespace millrace::kernel::cli::doctor
