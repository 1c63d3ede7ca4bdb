// The data folder and the file system that it is on.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_proc.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli::doctor {

namespace {

constexpr std::uint32_t may_write = 2;
constexpr std::uint32_t may_enter = 1;
constexpr std::uint32_t root = 0;

// By the permission bits; what else may forbid it (a read-only mount, the service's unit) is of
// other checks.
bool has_right(const ServiceUser& user, const FileFacts& file, std::uint32_t right) {
  constexpr unsigned owner_shift = 6;
  constexpr unsigned group_shift = 3;
  if (user.id == root) return true;
  if (user.id == file.owner) return (file.mode >> owner_shift & right) != 0;
  if (contains(user.groups, file.group)) return (file.mode >> group_shift & right) != 0;
  return (file.mode & right) != 0;
}

std::string mode_text(std::uint32_t mode) {
  constexpr std::string_view letters = "rwxrwxrwx";
  std::string text;
  for (std::size_t at = 0; at < letters.size(); ++at) {
    text += (mode >> (letters.size() - 1 - at) & 1) != 0 ? letters[at] : '-';
  }
  return text;
}

std::string facts_text(const std::string& path, const FileFacts& file) {
  return concat(path, ": owner ", file.owner, ", group ", file.group, ", ", mode_text(file.mode));
}

// The first folder on the way to `path` that `user` may not go through.
std::optional<std::string> barrier_before(const std::string& path, const ServiceUser& user,
                                          Probe& probe) {
  std::string above;
  for (const auto& part : std::filesystem::path(path).parent_path()) {
    above = (std::filesystem::path(above) / part).string();
    const auto file = probe.look_at(above);
    if (file && !has_right(user, *file, may_enter)) return facts_text(above, *file);
  }
  return std::nullopt;
}

// What of `path` is there: itself, or the nearest folder above it.
std::string nearest_existing(std::string path, Probe& probe) {
  while (path.size() > 1) {
    const auto file = probe.look_at(path);
    if (file || file.error().code != Errc::not_found) break;
    path = std::filesystem::path(path).parent_path().string();
  }
  return path;
}

constexpr const char* data_check = "data.folder";

Finding missing_folder(const std::string& data, const ServiceUser& user, Probe& probe) {
  const auto above = nearest_existing(data, probe);
  const auto file = probe.look_at(above);
  if (file && has_right(user, *file, may_write) && !barrier_before(above + "/x", user, probe)) {
    return {data_check, Severity::ok, concat(data, " is made at the first start"),
            facts_text(above, *file), ""};
  }
  return {data_check, Severity::problem,
          concat(data, " is not there, and user ", user.name, " may not make it"),
          file ? facts_text(above, *file) : file.error().detail,
          concat("install -d -o ", user.name, " -m 0750 ", data)};
}

bool is_partition_folder(std::string_view name) {
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos || dash + 1 == name.size()) return false;
  return std::ranges::all_of(name.substr(dash + 1),
                             [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_network(std::string_view type) {
  constexpr std::array types{"nfs",  "nfs4", "cifs",      "smb3",       "smbfs",          "9p",
                             "ceph", "afs",  "glusterfs", "fuse.sshfs", "fuse.glusterfs", "lustre"};
  return std::ranges::find(types, type) != types.end();
}

std::string mount_text(const Mount& mount) {
  return concat("/proc/self/mountinfo: ", mount.source, " on ", mount.point, ", ", mount.type, ", ",
                joined(mount.options, ","));
}

Finding of_file_system(const Mount& mount) {
  const auto* check = "disk.filesystem";
  const auto evidence = mount_text(mount);
  if (is_network(mount.type)) {
    return {check, Severity::warning,
            concat("the data is on ", mount.type, ", a network file system"), evidence,
            "keep data on a disk of this machine: locks, syncs and space are not reliable over a "
            "network; other brokers are what protects it"};
  }
  if (mount.type == "tmpfs" || mount.type == "ramfs") {
    return {check, Severity::warning, "the data is in memory and gone after a restart", evidence,
            "set broker.data to a folder on a disk"};
  }
  if (mount.type == "overlay" || mount.type == "aufs") {
    return {check, Severity::warning, "the data is in a container's own layer and goes with it",
            evidence, "mount a volume where broker.data is"};
  }
  return {check, Severity::ok, concat("the data is on ", mount.type), evidence, ""};
}

std::optional<Finding> of_mount_options(const Mount& mount) {
  const auto* check = "disk.mount";
  const auto remedy = [&mount](std::string_view option) {
    return concat("mount -o remount,", option, " ", mount.point, ", and the same in /etc/fstab");
  };
  if (contains(mount.options, "ro")) {
    return Finding{
        check, Severity::problem, concat(mount.point, " is mounted read-only"), mount_text(mount),
        "the system does so after an error of the disk: see dmesg; then " + remedy("rw")};
  }
  if (contains(mount.options, "sync")) {
    return Finding{check, Severity::warning,
                   concat(mount.point, " is mounted with sync: every write waits for the disk"),
                   mount_text(mount), remedy("async")};
  }
  if (contains(mount.options, "strictatime")) {
    return Finding{check, Severity::warning,
                   concat(mount.point, " is mounted with strictatime: every read writes"),
                   mount_text(mount), remedy("noatime")};
  }
  return std::nullopt;
}

}  // namespace

Findings check_data_folder(const Patient& patient, Probe& probe) {
  const auto data = patient.data();
  const auto& user = patient.user;
  const auto file = probe.look_at(data);
  if (!file && file.error().code == Errc::not_found) return {missing_folder(data, user, probe)};
  if (!file) {
    return {{data_check, Severity::warning, concat(data, " could not be looked at"),
             file.error().detail, "run this as root or as the service's user"}};
  }
  const auto evidence = facts_text(data, *file);
  if (!file->is_folder) {
    return {{data_check, Severity::problem, concat(data, " is no folder"), evidence,
             "move it away, or set broker.data to a folder"}};
  }
  if (const auto barrier = barrier_before(data, user, probe)) {
    return {{data_check, Severity::problem, concat("user ", user.name, " may not reach ", data),
             *barrier, "let that user through (chmod o+x), or set broker.data to another folder"}};
  }
  if (!has_right(user, *file, may_write) || !has_right(user, *file, may_enter)) {
    return {{data_check, Severity::problem, concat("user ", user.name, " may not write to ", data),
             evidence, concat("chown -R ", user.name, ": ", data)}};
  }
  return {
      {data_check, Severity::ok, concat("user ", user.name, " may write to ", data), evidence, ""}};
}

Findings check_space(const Patient& patient, Probe& probe) {
  constexpr unsigned little_percent = 10;
  constexpr std::uint64_t reserved_part = 64;  // of a small disk, as storage.filelog has it
  const auto* check = "disk.space";
  const auto folder = nearest_existing(patient.data(), probe);
  const auto volume = probe.volume(folder);
  if (!volume || volume->bytes == 0) {
    return {{check, Severity::warning, "free space could not be found out",
             volume ? folder + ": of no size" : volume.error().detail,
             "run this as root or as the service's user"}};
  }
  const auto reserve =
      std::min(patient.number("storage.reserve_bytes"), volume->bytes / reserved_part);
  const auto percent = percent_of(volume->bytes_free, volume->bytes);
  const auto evidence = concat(folder, ": ", size_text(volume->bytes_free), " free of ",
                               size_text(volume->bytes), " (", percent, " %)");
  const auto remedy =
      "delete topics, shorten their retention (millrace config set --topic NAME retention.ms=…), "
      "or give it a larger disk";
  if (volume->bytes_free <= reserve) {
    return {{check, Severity::problem,
             concat("the disk is full: what is left, ", size_text(reserve),
                    ", is kept for storage.reserve_bytes, and producers are refused"),
             evidence, remedy}};
  }
  if (percent < little_percent) {
    return {{check, Severity::warning, "the disk is nearly full", evidence, remedy}};
  }
  return {{check, Severity::ok, concat(size_text(volume->bytes_free), " are free"), evidence, ""}};
}

Findings check_retention(const Patient& patient, Probe& probe) {
  const auto* check = "disk.retention";
  const auto bytes_max = patient.setting("defaults.\"log.retention.bytes\"");
  const auto kept = unsigned_of(bytes_max);  // -1 is no limit
  if (!kept) {
    return {{check, Severity::ok, "retention is by time alone, whatever the disk has",
             concat("[defaults]: log.retention.bytes = ", bytes_max.empty() ? "-1" : bytes_max),
             ""}};
  }
  const auto names = probe.list(patient.data());
  const auto volume = probe.volume(patient.data());
  if (!names || !volume) return {};  // of other checks
  const auto partitions =
      static_cast<std::uint64_t>(std::ranges::count_if(*names, is_partition_folder));
  // What is older than the limit goes by whole segments.
  const auto each = *kept + patient.number("defaults.\"log.segment.bytes\"");
  const auto evidence =
      concat(patient.data(), ": ", partitions, " partitions, each up to ", size_text(each),
             " by log.retention.bytes and log.segment.bytes of "
             "[defaults]; the disk has ",
             size_text(volume->bytes));
  if (partitions > 0 && each > volume->bytes / partitions) {
    return {{check, Severity::warning, "retention allows more than the disk has", evidence,
             "lower log.retention.bytes, or give it a larger disk"}};
  }
  return {{check, Severity::ok, "what retention allows fits the disk", evidence, ""}};
}

Findings check_file_system(const Patient& patient, Probe& probe) {
  const auto mounts = probe.read("/proc/self/mountinfo");
  const auto mount =
      mounts ? mount_of(*mounts, nearest_existing(patient.data(), probe)) : std::nullopt;
  if (!mount) {
    return {{"disk.filesystem", Severity::warning, "the file system could not be found out",
             mounts ? "/proc/self/mountinfo has no mount of it" : mounts.error().detail,
             "mount /proc"}};
  }
  Findings findings{of_file_system(*mount)};
  if (auto of_options = of_mount_options(*mount)) findings.push_back(*std::move(of_options));
  return findings;
}

Findings check_inodes(const Patient& patient, Probe& probe) {
  constexpr unsigned little_percent = 10;
  constexpr std::uint64_t none_left = 100;
  const auto* check = "disk.inodes";
  const auto volume = probe.volume(nearest_existing(patient.data(), probe));
  if (!volume || volume->inodes == 0) return {};  // some file systems make them as needed
  const auto percent = percent_of(volume->inodes_free, volume->inodes);
  const auto evidence =
      concat(volume->inodes_free, " of ", volume->inodes, " inodes are free (", percent, " %)");
  const auto* remedy =
      "a segment takes three files: delete topics, raise segment.bytes, or make "
      "the file system anew with more inodes";
  if (volume->inodes_free < none_left) {
    return {{check, Severity::problem, "the file system takes no more files", evidence, remedy}};
  }
  if (percent < little_percent) {
    return {{check, Severity::warning, "the file system takes few more files", evidence, remedy}};
  }
  return {{check, Severity::ok, "there is room for more files", evidence, ""}};
}

}  // namespace millrace::kernel::cli::doctor
