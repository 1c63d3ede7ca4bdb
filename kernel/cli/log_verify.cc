// millrace log verify: reads every log of a data directory, or of some partitions, and says what is
// wrong with it.
#include <iostream>
#include <numeric>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/filelog/text.h>
#include <millrace/utf8.h>

#include "kernel/cli/log_check.h"
#include "kernel/cli/log_verbs.h"
#include "kernel/cli/progress_line.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;
using filelog::say;

// The names are a part of the JSON's shape.
std::string_view state_of(const PartitionReport& report) {
  const auto worst = report.worst();
  return worst == FindingKind::note ? "ok" : name_of(worst);
}

json::value offset_of(Offset offset) {
  return offset.value < 0 ? json::value(nullptr) : json::value(offset.value);
}

json::object describe(const PartitionReport& report) {
  json::array findings;
  for (const auto& finding : report.findings) {
    findings.emplace_back(json::object{{"kind", name_of(finding.kind)},
                                       {"file", finding.file},
                                       {"position", finding.position},
                                       {"bytes", finding.bytes},
                                       {"from_offset", offset_of(finding.from)},
                                       {"to_offset", offset_of(finding.to)},
                                       {"what", finding.what}});
  }
  return {{"partition", report.name},
          {"path", report.path},
          {"state", state_of(report)},
          {"start_offset", report.start.value},
          {"end_offset", report.end.value},
          {"segments", report.segments},
          {"batches", report.batches},
          {"bytes", report.bytes},
          {"being_written", report.being_written},
          {"findings", std::move(findings)}};
}

std::string place_in(const Finding& finding) {
  return say(shown(finding.file), ":", finding.position, " (", finding.bytes, " bytes)");
}

std::string offsets_in(const Finding& finding) {
  if (finding.from.value < 0) return "";
  if (finding.to.value < 0) return say(", from offset ", finding.from.value, " on");
  return say(", offsets ", finding.from.value, "-", finding.to.value);
}

std::string line_of(const Finding& finding) {
  const auto what = shown(finding.what);
  switch (finding.kind) {
    case FindingKind::torn:
      return say("torn tail at ", place_in(finding), offsets_in(finding), ": ", what);
    case FindingKind::damaged:
      return say("damaged at ", place_in(finding), offsets_in(finding), ": ", what);
    case FindingKind::index:
      return say("index ", shown(finding.file), ":", finding.position, ": ", what);
    case FindingKind::beside: return say(shown(finding.file), ": ", what);
    case FindingKind::note: break;
  }
  return say("note: ", what);
}

void print(const PartitionReport& report) {
  std::cout << shown(report.name) << ": " << state_of(report) << ", offsets " << report.start.value
            << " to " << report.end.value << ", " << counted(report.segments, "segment") << ", "
            << report.batches << (report.batches == 1 ? " batch, " : " batches, ") << report.bytes
            << " bytes\n";
  for (const auto& finding : report.findings) std::cout << "  " << line_of(finding) << '\n';
}

class Verify {
 public:
  Verify(Environment& environment, const Context& context)
      : files_(environment.files()),
        json_(context.output == OutputFormat::json),
        line_(environment.clock(), std::chrono::milliseconds(200)) {}

  Result<> run(const std::vector<std::string>& paths) {
    MR_TRY(const auto places, find_places(files_, paths));
    for (const auto& place : places) partitions_ += place.folders.size();
    for (const auto& place : places) MR_CHECK(verify(place));
    line_.clear();
    if (!json_ && wrong_ == 0 && unreadable_ == 0) {
      std::cout << counted(partitions_, "partition") << ", " << bytes_
                << " bytes: nothing is wrong\n";
    }
    std::cout.flush();
    if (wrong_ == 0 && unreadable_ == 0) return {};
    auto text = say(wrong_, " of ", partitions_, " partitions are not sound");
    if (unreadable_ > 0) text += say(", ", unreadable_, " checkpoint files cannot be read");
    return Error{Errc::corrupt,
                 text + "; millrace log repair shows what can be done, once the broker is stopped"};
  }

 private:
  Result<> verify(const LogPlace& place) {
    const auto& directory = place.directory;
    if (!directory.holder.empty()) {
      line_.clear();
      std::cerr << "millrace: " << shown(directory.path) << " is in use by " << directory.holder
                << ": what is being written is not judged\n";
    }
    for (const auto& error : directory.unreadable) {
      ++unreadable_;
      line_.clear();
      std::cerr << "millrace: " << error.detail << "; a broker checks its partitions as a whole\n";
    }
    for (const auto& path : place.folders) MR_CHECK(verify(directory, path));
    return {};
  }

  Result<> verify(const DataDirectory& directory, const std::string& path) {
    const auto folder = look_at_folder(files_, path);
    // Of a running broker a topic may be deleted meanwhile.
    if (!folder && folder.error().code == Errc::not_found && !directory.holder.empty()) return {};
    if (!folder) return pass(folder.error());
    const auto progress = [this, &folder](std::uint64_t bytes) {
      bytes_ += bytes;
      if (!line_.due()) return;
      line_.show(say("checked ", checked_, " of ", partitions_, " partitions, ",
                     human_bytes(static_cast<double>(bytes_)), "; reading ",
                     shown(folder->name, 60)));
    };
    const auto checked = check_partition(files_, directory, *folder, progress);
    if (!checked) return pass(checked.error());
    const auto& report = *checked;
    ++checked_;
    if (report.worst() != FindingKind::note) ++wrong_;
    line_.clear();
    if (json_) {
      print_json(describe(report));
    } else {
      print(report);
    }
    return {};
  }

  // One that cannot be read keeps nobody from the others.
  Result<> pass(const Error& why) {
    ++wrong_;
    line_.clear();
    std::cerr << "millrace: " << shown(why.detail, 1024) << '\n';
    return {};
  }

  FileSystem& files_;
  const bool json_;
  ProgressLine line_;
  std::size_t partitions_ = 0;
  std::size_t checked_ = 0;
  std::size_t wrong_ = 0;
  std::size_t unreadable_ = 0;
  std::uint64_t bytes_ = 0;
};

Task<> verify(Environment& environment, const Context& context, std::vector<std::string> paths) {
  co_return Verify(environment, context).run(paths);
}

}  // namespace

void add_log_verify_verb(CLI::App& log, Context& context, Action& action) {
  auto* verb = log.add_subcommand(
      "verify",
      "read all logs of a data directory and say what is wrong: checksums, offsets, indexes, files "
      "beside them. Changes nothing; a broker may run. Ends with 65 when something is wrong");
  const auto paths = std::make_shared<std::vector<std::string>>();
  verb->add_option("PATH", *paths, "a data directory (broker.data), or folders of partitions")
      ->required()
      ->check(not_empty);
  add_examples(*verb, {"millrace log verify /var/lib/millrace/data",
                       "millrace -o json log verify /var/lib/millrace/data/orders-0"});
  verb->callback([&context, &action, paths] {
    action = [&context, paths] {
      return run([&](Environment& environment) { return verify(environment, context, *paths); });
    };
  });
}

}  // namespace millrace::kernel::cli
