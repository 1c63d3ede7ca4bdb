// millrace log repair: shows what can be done about a log that is not sound, and does it.
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/filelog/names.h>
#include <millrace/filelog/text.h>
#include <millrace/utf8.h>

#include "kernel/cli/log_repair.h"
#include "kernel/cli/log_verbs.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;
using filelog::say;

struct Arguments {
  std::string path;
  bool execute = false;
  bool skip_damaged = false;
};

json::object describe(const RepairStep& step) {
  const auto offset = [](Offset value) {
    return value.value < 0 ? json::value(nullptr) : json::value(value.value);
  };
  return {{"action", name_of(step.action)},
          {"file", step.file},
          {"position", step.region.position},
          {"bytes", step.region.bytes()},
          {"from_offset", offset(step.region.from)},
          {"to_offset", step.has_placeholder() ? offset(step.region.to) : json::value(nullptr)},
          {"kept_in", step.kept_in.empty() ? json::value(nullptr) : json::value(step.kept_in)}};
}

std::string offsets_of(const RepairStep& step) {
  if (step.has_placeholder()) {
    return say("an empty batch keeps offsets ", step.region.from.value, "-", step.region.to.value);
  }
  if (step.action == RepairAction::cut) {
    return say("the log then ends at offset ", step.region.from.value);
  }
  if (const auto& displaced = step.region.displaced; !displaced.empty()) {
    return say("its offsets, ", displaced.front().from.value, "-", displaced.back().to.value,
               ", are missing further in front");
  }
  return "no offset is missing";
}

std::string line_of(const RepairStep& step) {
  const auto file = shown(step.file);
  const auto kept = step.kept_in.empty() ? std::string("nothing is in them to keep")
                                         : say("kept in ", shown(step.kept_in));
  const auto range = say(step.region.bytes(), " bytes at ", file, ":", step.region.position);
  switch (step.action) {
    case RepairAction::cut: return say("cut ", range, "; ", kept, "; ", offsets_of(step));
    case RepairAction::move_aside:
      if (step.region.bytes() == 0)
        return say("put in at ", file, ":", step.region.position, ": ", offsets_of(step));
      return say("move ", range, " aside; ", kept, "; ", offsets_of(step));
    case RepairAction::remove_indexes:
      return say("remove ", file, " and its .timeindex; a broker makes them again");
    case RepairAction::set_aside: break;
  }
  return say("rename ", file, " to ", shown(step.kept_in), "; ",
             step.file.ends_with(filelog::log_suffix)
                 ? "the log is whole without it"
                 : "a broker makes it again where it is missed");
}

// What is written must be readable for the broker.
Result<> check_user(const std::string& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0 || status.st_uid == ::geteuid()) return {};
  return Error{
      Errc::invalid_argument,
      say(shown(directory), " belongs to user ", status.st_uid, ", this is user ", ::geteuid(),
          "; run it as that user, or the broker cannot open what is written")};
}

class Repair {
 public:
  Repair(Environment& environment, const Context& context, const Arguments& arguments)
      : files_(environment.files()),
        json_(context.output == OutputFormat::json),
        arguments_(arguments) {}

  Result<> run() {
    MR_TRY(const auto places, find_places(files_, {arguments_.path}));
    for (const auto& place : places) MR_CHECK(repair(place));
    std::cout.flush();
    if (left_ > 0) {
      return Error{Errc::corrupt, say(left_, " findings are left as they are; see above")};
    }
    if (json_) return {};
    if (steps_ == 0) std::cout << "nothing is to be done\n";
    if (steps_ > 0 && !arguments_.execute) std::cout << "nothing was changed; --execute does it\n";
    return {};
  }

 private:
  Result<> repair(const LogPlace& place) {
    const auto& directory = place.directory;
    if (!directory.holder.empty()) {
      return Error{Errc::conflict, shown(directory.path) + " is in use by " + directory.holder +
                                       "; stop the broker first"};
    }
    if (arguments_.execute) MR_CHECK(check_user(directory.path));
    // So that no broker starts meanwhile. Where none has ever been, none will.
    std::unique_ptr<FileSystem::Lock> lock;
    if (directory.marked) {
      MR_TRY(lock, files_.lock(directory.path + "/" + std::string(filelog::lock_file)));
    }
    const auto plan = plan_repair(directory);
    steps_ += plan.steps.size();
    // Of no partition.
    print({.path = directory.path}, plan);
    if (arguments_.execute) MR_CHECK(carry_out(files_, directory, plan));
    for (const auto& path : place.folders) MR_CHECK(repair(directory, path));
    return {};
  }

  Result<> repair(const DataDirectory& directory, const std::string& path) {
    const auto folder = look_at_folder(files_, path);
    if (!folder) return leave(folder.error());
    const auto report = check_partition(files_, directory, *folder, {});
    if (!report) return leave(report.error());
    const auto plan = plan_repair(*folder, *report, arguments_.skip_damaged);
    steps_ += plan.steps.size();
    left_ += plan.left.size();
    print(*folder, plan);
    if (!arguments_.execute) return {};
    const auto done = carry_out(files_, directory, *folder, plan);
    if (done) return {};
    return Error{
        done.error().code,
        say(done.error().detail, "; the repair of ", shown(folder->name),
            " has stopped there, no sound batch is lost: repair again once that is mended")};
  }

  // One that cannot be read keeps nobody from the others.
  Result<> leave(const Error& why) {
    ++left_;
    std::cerr << "millrace: " << shown(why.detail, 1024) << "; left as it is\n";
    return {};
  }

  void print(const PartitionFolder& folder, const RepairPlan& plan) const {
    if (folder.name.empty() && plan.steps.empty()) return;
    if (json_) {
      json::array steps;
      for (const auto& step : plan.steps) steps.emplace_back(describe(step));
      print_json(json::object{{"partition", folder.name},
                              {"path", folder.path},
                              {"execute", arguments_.execute},
                              {"steps", std::move(steps)},
                              {"left", json::value_from(plan.left)}});
      return;
    }
    if (plan.steps.empty() && plan.left.empty()) return;
    std::cout << shown(folder.name.empty() ? folder.path : folder.name) << ":\n";
    const auto* prefix = arguments_.execute ? "  " : "  would ";
    for (const auto& step : plan.steps) std::cout << prefix << line_of(step) << '\n';
    for (const auto& left : plan.left) std::cout << "  left: " << shown(left, 1024) << '\n';
    std::cout.flush();
  }

  FileSystem& files_;
  const bool json_;
  const Arguments& arguments_;
  std::size_t steps_ = 0;
  std::size_t left_ = 0;
};

Task<> repair(Environment& environment, const Context& context, const Arguments& arguments) {
  co_return Repair(environment, context, arguments).run();
}

}  // namespace

void add_log_repair_verb(CLI::App& log, Context& context, Action& action) {
  auto* verb = log.add_subcommand(
      "repair",
      "show what can be done about a log that is not sound, the broker being stopped; --execute "
      "does it. A torn tail is cut, indexes are removed for the broker to make again. What is "
      "taken out of a log is kept beside it as OFFSET.damaged. Ends with 65 when something is "
      "left");
  const auto wanted = std::make_shared<Arguments>();
  verb->add_option("PATH", wanted->path, "a data directory (broker.data), or a partition's folder")
      ->required()
      ->check(not_empty);
  verb->add_flag("--execute", wanted->execute, "do it");
  verb->add_flag("--skip-damaged", wanted->skip_damaged,
                 "move damaged bytes aside too; the offsets of what they held stay empty");
  add_examples(*verb,
               {"millrace log repair /var/lib/millrace/data",
                "millrace log repair /var/lib/millrace/data --execute",
                "millrace log repair /var/lib/millrace/data/orders-0 --skip-damaged --execute"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return repair(environment, context, *wanted); });
    };
  });
}

}  // namespace millrace::kernel::cli
