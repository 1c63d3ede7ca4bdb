#include "kernel/streams/stream_changes.h"

#include <algorithm>
#include <string_view>

#include "kernel/config/text.h"
#include "kernel/streams/stream_store.h"

namespace millrace::kernel {

namespace {

/// All that is declared, but for the files that have taken operators' places.
std::string declaration(const PlannedStream& stream) {
  auto spec = stream.spec;
  for (auto& step : spec.steps) step.file.clear();
  return encode_stream(spec);
}

std::vector<std::size_t> steps_of_other_files(const PlannedStream& running,
                                              const PlannedStream& wanted) {
  std::vector<std::size_t> steps;
  for (std::size_t at = 0; at < wanted.steps.size(); ++at) {
    if (running.steps[at].library.descriptor != wanted.steps[at].library.descriptor) {
      steps.push_back(at);
    }
  }
  return steps;
}

}  // namespace

const PlannedStream* find_stream(const std::vector<PlannedStream>& streams, std::string_view name) {
  const auto found = std::ranges::find_if(
      streams, [name](const PlannedStream& stream) { return stream.spec.name == name; });
  return found == streams.end() ? nullptr : &*found;
}

std::string to_string(const StreamChange& change, const std::vector<PlannedStream>& streams) {
  const auto stream = concat("stream ", change.stream, ": ");
  switch (change.kind) {
    case StreamChange::Kind::started: return stream + "started";
    case StreamChange::Kind::changed: return stream + "goes on as it is declared now";
    case StreamChange::Kind::ended: return stream + "ended, its changelog stays";
    case StreamChange::Kind::replaced: break;
  }
  std::vector<std::string> names;
  const auto* planned = find_stream(streams, change.stream);
  for (const auto at : change.steps) {
    if (planned != nullptr) names.push_back(planned->spec.steps[at].name);
  }
  return concat(stream, names.size() > 1 ? "operators " : "operator ", joined(names), " replaced");
}

std::vector<StreamChange> changes_between(const std::vector<PlannedStream>& running,
                                          const std::vector<PlannedStream>& wanted) {
  using Kind = StreamChange::Kind;
  std::vector<StreamChange> changes;
  for (const auto& stream : wanted) {
    const auto& name = stream.spec.name;
    const auto* before = find_stream(running, name);
    if (before == nullptr) {
      changes.push_back({Kind::started, name, {}, {}});
    } else if (declaration(*before) != declaration(stream)) {
      changes.push_back({Kind::changed, name, {}, {}});
    } else if (auto steps = steps_of_other_files(*before, stream); !steps.empty()) {
      changes.push_back({Kind::replaced, name, std::move(steps), {}});
    }
  }
  for (const auto& stream : running) {
    const auto& name = stream.spec.name;
    if (find_stream(wanted, name) == nullptr) changes.push_back({Kind::ended, name, {}, {}});
  }
  std::ranges::sort(changes, {}, &StreamChange::stream);
  return changes;
}

}  // namespace millrace::kernel
