// replay-session [--broker HOST:PORT | --millraced PROGRAM] FILE...: says to a live broker what
// recorded clients said, and compares its answers with the recorded ones (compare_answers.h tells
// what counts as equal).
//
// Each session gets a millraced of its own (the one beside this program, if none is named) with the
// recorded broker's id. A broker given with --broker should be such a one, without topics.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "first_state.h"
#include "replayer.h"
#include "shipped_codecs.h"

namespace {

using namespace millrace;
using namespace millrace::wire;

struct Options {
  std::optional<Address> broker;
  std::string program = program_folder() + "/millraced";
};

Result<Outcome> replay_file(const std::string& path, const Options& options) {
  MR_TRY(const auto session, read_session(path));
  const auto state = read_first_state(session);
  std::unique_ptr<BrokerProcess> process;
  if (!options.broker) {
    std::vector<std::string> settings{"broker.id=" + std::to_string(state.broker_id),
                                      "log.level=warning", "log.levels.broker=info",
                                      "defaults.\"group.initial.rebalance.delay.ms\"=0"};
    for (const auto& [name, value] : state.settings) {
      settings.push_back("defaults.\"" + name + "\"=" + value);
    }
    MR_TRY(process, BrokerProcess::start(options.program, settings));
  }
  const auto address = options.broker ? *options.broker : process->address();
  MR_TRY(const auto served, ask_served_apis(address));
  MR_TRY(auto bindings, establish(state, address, served));
  return replay(session, address, served, std::move(bindings));
}

bool run(const std::string& path, const Options& options) {
  const auto outcome = replay_file(path, options);
  if (!outcome) {
    std::printf("%s: FAILED: %s\n", path.c_str(), outcome.error().detail.c_str());
    return false;
  }
  const bool passed = outcome->differences.empty();
  std::printf("%s: %s: %d as recorded, %zu differences, %zu requests skipped\n", path.c_str(),
              passed ? "passed" : "FAILED", outcome->equal, outcome->differences.size(),
              outcome->skipped.size());
  for (const auto& difference : outcome->differences) std::printf("  %s\n", difference.c_str());
  for (const auto& skipped : outcome->skipped) std::printf("  skipped %s\n", skipped.c_str());
  std::fflush(stdout);
  return passed;
}

Result<Options> take_options(std::vector<std::string>& words) {
  Options options;
  while (words.size() >= 2 && words[0].starts_with("--")) {
    if (words[0] == "--broker") {
      MR_TRY(options.broker, parse_address(words[1]));
    } else if (words[0] == "--millraced") {
      options.program = words[1];
    } else {
      break;
    }
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.empty() || words[0].starts_with("--")) {
    return Error{Errc::invalid_argument,
                 "usage: replay-session [--broker HOST:PORT | --millraced PROGRAM] FILE.jsonl..."};
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto options = take_options(words);
  if (!options) {
    std::fprintf(stderr, "%s\n", options.error().detail.c_str());
    return 64;
  }
  int passed = 0;
  int failed = 0;
  for (const auto& path : words) ++(run(path, *options) ? passed : failed);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
