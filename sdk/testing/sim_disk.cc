#include <millrace/testing/sim_disk.h>

#include <algorithm>
#include <cstring>
#include <map>

#include <millrace/bytes.h>
#include <millrace/cached_file.h>

namespace millrace::testing {

namespace {

constexpr std::uint64_t sector_bytes = 512;
constexpr std::uint64_t page_bytes = 4096;

// A write, or a truncation to `position`.
struct FileChange {
  std::uint64_t position = 0;
  std::optional<std::string> bytes;

  void apply_to(std::string& content) const {
    if (!bytes) {
      content.resize(position);
      return;
    }
    const auto end = position + bytes->size();
    if (content.size() < end) content.resize(end);
    content.replace(position, bytes->size(), *bytes);
  }
};

// A name goes, a name appears, or, for a rename, both at once.
struct FolderChange {
  std::string gone;
  std::string made;
  std::shared_ptr<SimInode> target;
};

Error no_such(const std::string& path) {
  return {Errc::not_found, path + ": no such file or folder"};
}

std::string hex(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

}  // namespace

// A file or a folder, as it is read now and as it is on the medium.
struct SimInode {
  using Entries = std::map<std::string, std::shared_ptr<SimInode>, std::less<>>;

  explicit SimInode(bool folder) : is_folder(folder) {}

  bool is_folder;
  Timestamp modified;

  std::string content;
  std::string durable_content;
  std::vector<FileChange> unsynced;
  std::set<std::uint64_t> cold_pages;  // not in memory, by number

  Entries entries;
  Entries durable_entries;
  std::vector<FolderChange> unsynced_entries;

  void change(FileChange done) {
    if (done.bytes) warm(done.position, done.bytes->size());
    done.apply_to(content);
    unsynced.push_back(std::move(done));
  }
  void change(FolderChange done) {
    apply(done, entries);
    unsynced_entries.push_back(std::move(done));
  }
  // Whether any of the range's pages was not in memory; now all are.
  bool warm(std::uint64_t position, std::uint64_t bytes) {
    if (bytes == 0 || cold_pages.empty()) return false;
    const auto from = cold_pages.lower_bound(position / page_bytes);
    const auto to = cold_pages.upper_bound((position + bytes - 1) / page_bytes);
    const bool any = from != to;
    cold_pages.erase(from, to);
    return any;
  }
  bool is_warm(std::uint64_t position, std::uint64_t bytes) const {
    if (bytes == 0) return true;
    const auto first = cold_pages.lower_bound(position / page_bytes);
    return first == cold_pages.end() || *first > (position + bytes - 1) / page_bytes;
  }
  // Whole pages, as the system does; what was not synced stays.
  void cool(std::uint64_t position, std::uint64_t bytes) {
    if (!unsynced.empty()) return;
    const auto end = std::min<std::uint64_t>(position + bytes, content.size());
    const bool to_end = end == content.size();
    const auto last = to_end ? (end + page_bytes - 1) / page_bytes : end / page_bytes;
    for (auto at = (position + page_bytes - 1) / page_bytes; at < last; ++at) cold_pages.insert(at);
  }
  void sync() {
    for (const auto& done : unsynced) done.apply_to(durable_content);
    unsynced.clear();
    durable_entries = entries;
    unsynced_entries.clear();
  }
  void sync_all() {
    sync();
    for (const auto& [name, entry] : entries) entry->sync_all();
  }
  void remove_all() {
    while (!entries.empty()) {
      const auto [name, entry] = *entries.begin();
      entry->remove_all();
      change(FolderChange{name, "", nullptr});
    }
  }
  // Falls back to what the medium holds, here and below.
  void crash(SimRandom& random);
  void write_some_sectors(const FileChange& done, SimRandom& random);
  std::uint64_t bytes() const {
    auto sum = static_cast<std::uint64_t>(content.size());
    for (const auto& [name, entry] : entries) sum += entry->bytes();
    return sum;
  }

 private:
  static void apply(const FolderChange& done, Entries& to) {
    if (!done.gone.empty()) to.erase(done.gone);
    if (!done.made.empty()) to[done.made] = done.target;
  }
};

// What of one write reaches the medium when its file's pages are written in any order: each of its
// sectors, or not.
void SimInode::write_some_sectors(const FileChange& done, SimRandom& random) {
  const auto end = done.position + done.bytes->size();
  for (auto at = done.position; at < end;) {
    const auto sector_end = std::min(end, (at / sector_bytes + 1) * sector_bytes);
    if (random.one_in(2)) {
      const auto part = done.bytes->substr(at - done.position, sector_end - at);
      FileChange{at, part}.apply_to(durable_content);
    }
    at = sector_end;
  }
  // Its size may reach the medium before its bytes do: there are zeros then.
  durable_content.resize(std::max<std::size_t>(durable_content.size(), end));
}

void SimInode::crash(SimRandom& random) {
  const auto survivors = random.below(unsynced.size() + 1);
  // The system writes in whatever order: later bytes may be there, and earlier ones not.
  const bool reordered = random.one_in(4);
  for (std::size_t i = 0; i < survivors; ++i) {
    if (reordered && unsynced[i].bytes) {
      write_some_sectors(unsynced[i], random);
    } else {
      unsynced[i].apply_to(durable_content);
    }
  }
  if (survivors < unsynced.size() && unsynced[survivors].bytes) {
    auto torn = std::move(unsynced[survivors]);
    const auto whole = torn.bytes->size();
    auto end = torn.position + (whole == 0 ? 0 : random.below(whole));
    // The size of a file may reach the medium before its bytes do, which come by sectors.
    const bool size_first = random.one_in(4);
    if (size_first) end = std::max(torn.position, end - end % sector_bytes);
    torn.bytes->resize(end - torn.position);
    torn.apply_to(durable_content);
    if (size_first) {
      durable_content.resize(std::max(durable_content.size(), torn.position + whole));
    }
  }
  unsynced.clear();
  content = durable_content;

  const auto names = random.below(unsynced_entries.size() + 1);
  for (std::size_t i = 0; i < names; ++i) apply(unsynced_entries[i], durable_entries);
  unsynced_entries.clear();
  entries = durable_entries;
  for (const auto& [name, entry] : entries) entry->crash(random);
}

class SimFile final : public File, public CachedFile {
 public:
  SimFile(SimDisk& disk, std::shared_ptr<SimInode> inode, std::string path, OpenMode mode)
      : disk_(disk),
        inode_(std::move(inode)),
        path_(std::move(path)),
        mode_(mode),
        incarnation_(disk.incarnation_) {
    ++disk_.files_open_;
  }
  ~SimFile() override { --disk_.files_open_; }
  SimFile(const SimFile&) = delete;
  SimFile& operator=(const SimFile&) = delete;

  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
    MR_CHECK(check_open());
    const auto& content = inode_->content;
    if (position >= content.size()) return 0;
    const auto bytes = std::min<std::uint64_t>(into.size(), content.size() - position);
    if (inode_->warm(position, bytes) && disk_.cold_read_) disk_.cold_read_(path_);
    std::memcpy(into.data(), content.data() + position, bytes);
    return bytes;
  }

  Result<> write_at(std::uint64_t position, std::span<const Bytes> parts) override {
    MR_CHECK(check_writable());
    std::string bytes;
    for (const auto& part : parts) bytes += as_text(part);
    const auto end = position + bytes.size();
    const auto size = static_cast<std::uint64_t>(inode_->content.size());
    const auto missing = end > size ? end - size : 0;
    const auto free = disk_.bytes_free();
    const bool fits = missing <= free;
    if (!fits) bytes.resize(bytes.size() - std::min<std::uint64_t>(missing - free, bytes.size()));
    disk_.note("write " + path_ + " at " + std::to_string(position) + " bytes " +
               std::to_string(bytes.size()) + " crc " + hex(crc32c(as_bytes(bytes))));
    inode_->change(FileChange{position, std::move(bytes)});
    inode_->modified = disk_.clock_.wall();
    if (!fits) return Error{Errc::io, "write " + path_ + ": no space left on the simulated disk"};
    return {};
  }

  Result<> truncate(std::uint64_t size) override {
    MR_CHECK(check_writable());
    disk_.note("truncate " + path_ + " to " + std::to_string(size));
    inode_->change(FileChange{size, std::nullopt});
    inode_->modified = disk_.clock_.wall();
    return {};
  }

  Result<> sync() override {
    MR_CHECK(disk_.begin_change());
    MR_CHECK(check_open());
    MR_CHECK(disk_.check_spot(path_));
    disk_.note("sync " + path_);
    if (disk_.syncs_fail_) return Error{Errc::io, "sync " + path_ + ": the simulated disk failed"};
    inode_->sync();
    return {};
  }

  Result<std::uint64_t> size() const override {
    MR_CHECK(check_open());
    return inode_->content.size();
  }
  bool resident(std::uint64_t position, std::uint64_t bytes) const noexcept override {
    return inode_->is_warm(position, bytes);
  }
  Result<> bring_in(std::uint64_t position, std::uint64_t bytes) const override {
    MR_CHECK(check_open());
    if (position + bytes > inode_->content.size()) {
      return Error{Errc::out_of_range, path_ + ": ends before the range that is brought in"};
    }
    if (inode_->warm(position, bytes) && disk_.cold_read_) disk_.cold_read_(path_);
    return {};
  }
  void forget(std::uint64_t position, std::uint64_t bytes) const noexcept override {
    inode_->cool(position, bytes);
  }
  const std::string& path() const noexcept override { return path_; }

 private:
  Result<> check_open() const {
    MR_CHECK(disk_.check_alive());
    if (incarnation_ == disk_.incarnation_) return {};
    return Error{Errc::io, path_ + ": was opened before the machine crashed"};
  }
  Result<> check_writable() const {
    MR_CHECK(disk_.begin_change());
    MR_CHECK(check_open());
    MR_CHECK(disk_.check_spot(path_));
    if (mode_ != OpenMode::read) return {};
    return Error{Errc::io, path_ + ": is open for reading only"};
  }

  SimDisk& disk_;
  std::shared_ptr<SimInode> inode_;
  std::string path_;
  OpenMode mode_;
  std::uint64_t incarnation_;
};

class SimDisk::HeldLock final : public Lock {
 public:
  HeldLock(SimDisk& disk, std::string path)
      : disk_(disk), path_(std::move(path)), incarnation_(disk.incarnation_) {}
  ~HeldLock() override {
    if (incarnation_ == disk_.incarnation_) disk_.locked_.erase(path_);
  }

 private:
  SimDisk& disk_;
  std::string path_;
  std::uint64_t incarnation_;
};

// A name in a folder that exists; whether the name does is another question.
struct SimDisk::Place {
  std::shared_ptr<SimInode> folder;
  std::string name;

  std::shared_ptr<SimInode> target() const {
    const auto found = folder->entries.find(name);
    return found == folder->entries.end() ? nullptr : found->second;
  }
};

SimDisk::SimDisk(Clock& clock, SimRandom& random, std::function<void(std::string)> note,
                 std::function<void(Duration)> wait)
    : clock_(clock),
      random_(random),
      note_(std::move(note)),
      wait_(std::move(wait)),
      root_(std::make_shared<SimInode>(true)) {}

SimDisk::~SimDisk() = default;

Result<> SimDisk::check_alive() const {
  if (!crashed_) return {};
  return Error{Errc::io, "the machine of this disk has crashed"};
}

Result<> SimDisk::begin_change() {
  if (changes_left_ && !crashed_ && (*changes_left_)-- == 0) {
    changes_left_.reset();
    crash();
  }
  MR_CHECK(check_alive());
  if (slow_longest_ > Duration{} && random_.one_in(slow_times_)) {
    const auto longest = static_cast<std::uint64_t>(slow_longest_.count());
    wait_(Duration(static_cast<Duration::rep>(random_.below(longest) + 1)));
  }
  return {};
}

Result<SimDisk::Place> SimDisk::place_of(const std::string& path) const {
  MR_CHECK(check_alive());
  Place place{root_, ""};
  for (std::size_t at = 0; at < path.size();) {
    const auto slash = std::min(path.find('/', at), path.size());
    auto part = path.substr(at, slash - at);
    at = slash + 1;
    if (part.empty() || part == ".") continue;
    if (!place.name.empty()) {
      place.folder = place.target();
      if (!place.folder || !place.folder->is_folder) return no_such(path);
    }
    place.name = std::move(part);
  }
  if (place.name.empty()) return Error{Errc::invalid_argument, "'" + path + "' names no file"};
  return place;
}

Result<std::shared_ptr<SimInode>> SimDisk::find(const std::string& path) const {
  MR_CHECK(check_alive());
  if (path.find_first_not_of('/') == std::string::npos && !path.empty()) return root_;
  MR_TRY(const auto place, place_of(path));
  auto target = place.target();
  if (!target) return no_such(path);
  return target;
}

std::uint64_t SimDisk::bytes_free() const {
  if (!bytes_max_) return UINT64_MAX;
  const auto used = root_->bytes();
  return *bytes_max_ > used ? *bytes_max_ - used : 0;
}

Result<> SimDisk::check_spot(const std::string& path) const {
  if (bad_folder_.empty() || !path.starts_with(bad_folder_ + "/")) return {};
  return Error{Errc::io, path + ": a bad spot of the simulated disk"};
}

Result<std::shared_ptr<File>> SimDisk::open(const std::string& path, OpenMode mode) {
  MR_TRY(const auto place, place_of(path));
  auto target = place.target();
  if (target && target->is_folder) return Error{Errc::io, "open " + path + ": it is a folder"};
  if (!target && mode != OpenMode::create) return no_such(path);
  if (!target) {
    MR_CHECK(begin_change());
    target = std::make_shared<SimInode>(false);
    target->modified = clock_.wall();
    place.folder->change(FolderChange{"", place.name, target});
    note("create " + path);
  }
  return std::make_shared<SimFile>(*this, std::move(target), path, mode);
}

Result<FileInfo> SimDisk::info(const std::string& path) {
  MR_TRY(const auto inode, find(path));
  return FileInfo{.name = path.substr(path.rfind('/') + 1),
                  .is_folder = inode->is_folder,
                  .size = inode->content.size(),
                  .modified = inode->modified};
}

Result<std::vector<FileInfo>> SimDisk::list(const std::string& folder) {
  MR_TRY(const auto inode, find(folder));
  if (!inode->is_folder) return no_such(folder);
  std::vector<FileInfo> infos;
  for (const auto& [name, entry] : inode->entries) {
    infos.push_back({name, entry->is_folder, entry->content.size(), entry->modified});
  }
  return infos;
}

Result<> SimDisk::make_folders(const std::string& path) {
  MR_CHECK(begin_change());
  for (auto slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const auto prefix = path.substr(0, slash);
    MR_TRY(const auto place, place_of(prefix));
    const auto target = place.target();
    if (target && !target->is_folder) {
      return Error{Errc::conflict, "make folder " + prefix + ": it is a file"};
    }
    if (!target) {
      place.folder->change(FolderChange{"", place.name, std::make_shared<SimInode>(true)});
      note("make folder " + prefix);
    }
    if (slash == std::string::npos) return {};
  }
}

Result<> SimDisk::rename(const std::string& from, const std::string& to) {
  MR_CHECK(begin_change());
  MR_TRY(const auto source, place_of(from));
  MR_TRY(const auto goal, place_of(to));
  const auto moved = source.target();
  if (!moved) return no_such(from);
  const auto replaced = goal.target();
  if (replaced && (replaced->is_folder != moved->is_folder || !replaced->entries.empty())) {
    return Error{Errc::conflict, "rename " + from + " to " + to + ": the name is taken"};
  }
  note("rename " + from + " to " + to);
  if (replaced == moved) return {};
  if (source.folder == goal.folder) {
    source.folder->change(FolderChange{source.name, goal.name, moved});
  } else {
    goal.folder->change(FolderChange{"", goal.name, moved});
    source.folder->change(FolderChange{source.name, "", nullptr});
  }
  return {};
}

Result<> SimDisk::remove(const std::string& path) {
  MR_CHECK(begin_change());
  MR_TRY(const auto place, place_of(path));
  const auto target = place.target();
  if (!target) return no_such(path);
  if (!target->entries.empty()) {
    return Error{Errc::conflict, "remove " + path + ": the folder is not empty"};
  }
  note("remove " + path);
  place.folder->change(FolderChange{place.name, "", nullptr});
  return {};
}

Result<> SimDisk::remove_tree(const std::string& path) {
  MR_CHECK(begin_change());
  MR_TRY(const auto place, place_of(path));
  const auto target = place.target();
  if (!target) return {};
  note("remove tree " + path);
  // One by one, so that a crash may leave any part of it.
  target->remove_all();
  place.folder->change(FolderChange{place.name, "", nullptr});
  return {};
}

Result<> SimDisk::sync_folder(const std::string& folder) {
  MR_CHECK(begin_change());
  MR_TRY(const auto inode, find(folder));
  if (!inode->is_folder) return no_such(folder);
  note("sync folder " + folder);
  if (syncs_fail_) return Error{Errc::io, "sync " + folder + ": the simulated disk failed"};
  inode->sync();
  return {};
}

Result<> SimDisk::sync_all(const std::string& folder) {
  MR_CHECK(begin_change());
  MR_CHECK(find(folder));
  note("sync all " + folder);
  if (syncs_fail_) return Error{Errc::io, "sync all " + folder + ": the simulated disk failed"};
  root_->sync_all();
  return {};
}

Result<std::unique_ptr<FileSystem::Lock>> SimDisk::lock(const std::string& path) {
  MR_CHECK(open(path, OpenMode::create));
  if (!locked_.insert(path).second) {
    return Error{Errc::conflict, "lock " + path + ": held by another user of the simulated disk"};
  }
  return std::make_unique<HeldLock>(*this, path);
}

Result<SpaceInfo> SimDisk::space(const std::string&) {
  MR_CHECK(check_alive());
  constexpr std::uint64_t unlimited = std::uint64_t{1} << 40;
  return SpaceInfo{bytes_max_.value_or(unlimited), std::min(bytes_free(), unlimited)};
}

void SimDisk::crash(bool forget) {
  note(forget ? "crash" : "kill");
  crashed_ = true;
  ++incarnation_;
  locked_.clear();
  if (forget) root_->crash(random_);
}

Result<> SimDisk::flip_bit(const std::string& path, std::uint64_t position) {
  MR_TRY(const auto inode, find(path));
  if (position >= inode->durable_content.size() || position >= inode->content.size()) {
    return Error{Errc::out_of_range,
                 path + ": byte " + std::to_string(position) + " is not on the medium"};
  }
  note("flip " + path + " at " + std::to_string(position));
  inode->durable_content[position] ^= 1;
  inode->content[position] ^= 1;
  return {};
}

Result<> SimDisk::forget_pages(const std::string& path) {
  MR_TRY(const auto inode, find(path));
  note("forget " + path);
  for (std::uint64_t at = 0; at * page_bytes < inode->content.size(); ++at) {
    inode->cold_pages.insert(at);
  }
  return {};
}

std::uint64_t SimDisk::cold_bytes(const std::string& path) const {
  const auto inode = find(path);
  return inode ? (*inode)->cold_pages.size() * page_bytes : 0;
}

}  // namespace millrace::testing
