#include "kernel/cli/log_check_beside.h"

#include <algorithm>

#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>

#include "kernel/partition/aborted_transactions.h"
#include "kernel/partition/epoch_cache.h"
#include "kernel/partition/producer_state.h"

namespace millrace::kernel::cli {

using filelog::say;

namespace {

class BesideCheck {
 public:
  BesideCheck(FileSystem& files, const BesideRequest& request, PartitionReport& report)
      : files_(files), request_(request), report_(report) {}

  Result<> run() {
    for (const auto& file : request_.folder.files) {
      if (file.is_folder) {
        check_folder(file);
      } else {
        MR_CHECK(check(file));
      }
    }
    if (unfinished_ > 0) {
      add(FindingKind::note, "",
          say(unfinished_,
              " files of an unfinished compaction, deletion or replacement, which a "
              "broker finishes or removes when it starts"));
    }
    return {};
  }

 private:
  using Check = Result<> (BesideCheck::*)(const Buffer&);

  void add(FindingKind kind, const std::string& name, std::string what) {
    const auto& folder = request_.folder.path;
    report_.findings.push_back({.kind = kind,
                                .file = name.empty() ? folder : folder + "/" + name,
                                .what = std::move(what)});
  }

  void check_folder(const FileInfo& folder);
  Result<> check(const FileInfo& file);
  Result<> check_with(const std::string& name, Check check);
  Result<> check_snapshot(const Buffer& content);
  Result<> check_aborted(const Buffer& content);
  Result<> check_epochs(const Buffer& content);
  Result<> check_metadata(const Buffer& content);

  FileSystem& files_;
  const BesideRequest& request_;
  PartitionReport& report_;
  std::size_t unfinished_ = 0;
};

void BesideCheck::check_folder(const FileInfo& folder) {
  if (folder.name.ends_with(damaged_mark)) return;  // what a repair has set aside
  const bool is_file = filelog::parse_offset_name(folder.name) ||
                       folder.name == filelog::leader_epochs_file ||
                       folder.name == filelog::metadata_file;
  if (is_file) add(FindingKind::beside, folder.name, "a folder, where a file has its place");
}

Result<> BesideCheck::check(const FileInfo& file) {
  if (file.name == filelog::leader_epochs_file) {
    return check_with(file.name, &BesideCheck::check_epochs);
  }
  if (file.name == filelog::metadata_file) {
    return check_with(file.name, &BesideCheck::check_metadata);
  }
  for (const auto mark : {filelog::deleted_mark, filelog::cleaned_mark, filelog::swap_mark,
                          filelog::temporary_mark}) {
    if (file.name.ends_with(mark)) ++unfinished_;
  }
  const auto name = filelog::parse_offset_name(file.name);
  if (!name) return {};
  if (name->suffix == filelog::producer_suffix) {
    return check_with(file.name, &BesideCheck::check_snapshot);
  }
  if (name->suffix == filelog::aborted_suffix) {
    return check_with(file.name, &BesideCheck::check_aborted);
  }
  const bool index =
      name->suffix == filelog::offset_index_suffix || name->suffix == filelog::time_index_suffix;
  const auto& segments = request_.folder.segments;
  if (index && std::ranges::find(segments, name->offset, &SegmentFile::base) == segments.end()) {
    add(FindingKind::note, file.name, "an index without its log, which a broker removes");
  }
  return {};
}

Result<> BesideCheck::check_with(const std::string& name, Check check) {
  const auto content = read_file(files_, request_.folder.path + "/" + name);
  // A running broker replaces and removes them.
  if (!content && content.error().code == Errc::not_found) return {};
  if (!content) return content.error();
  if (const auto sound = (this->*check)(*content); !sound) {
    add(FindingKind::beside, name, sound.error().detail);
  }
  return {};
}

Result<> BesideCheck::check_snapshot(const Buffer& content) {
  return ProducerStates().restore(content, Timestamp{0});
}

Result<> BesideCheck::check_aborted(const Buffer& content) {
  return AbortedTransactions().add_all(content);
}

Result<> BesideCheck::check_epochs(const Buffer& content) {
  MR_TRY(const auto cache, EpochCache::parse(content.text()));
  for (const auto& [epoch, start] : request_.epochs) {
    const auto found = cache.epoch_of(start);
    // Epochs of records that were deleted are forgotten, where their bytes are still there.
    if (found == Epoch{} || found == epoch) continue;
    // While a broker runs, the newest batches may be newer than the file that was read.
    if (!request_.directory.holder.empty() && epoch > cache.newest()) continue;
    return Error{Errc::corrupt, say("at offset ", start.value, " it has leader epoch ", found.value,
                                    ", the batch there has ", epoch.value)};
  }
  return {};
}

Result<> BesideCheck::check_metadata(const Buffer& content) {
  constexpr std::string_view field = "topic_id:";
  const auto text = content.text();
  if (text.find_first_not_of('\0') == std::string_view::npos) return {};  // torn: written anew
  if (const auto at = text.find(field); at != std::string_view::npos) {
    const auto value = text.find_first_not_of(' ', at + field.size());
    if (value != std::string_view::npos) {
      const auto end = text.find_first_of(" \r\n", value);
      if (parse_uuid(text.substr(value, end - value))) return {};
    }
  }
  return Error{Errc::corrupt, "no line 'topic_id: ID' with 22 characters of base64url"};
}

}  // namespace

Result<> check_beside(FileSystem& files, const BesideRequest& request, PartitionReport& report) {
  return BesideCheck(files, request, report).run();
}

}  // namespace millrace::kernel::cli
