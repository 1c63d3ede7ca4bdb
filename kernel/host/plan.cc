#include "kernel/host/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

/// A request and the library that answers it; none when that failed.
struct Candidate {
  PluginRequest request;
  std::optional<PluginLibrary> library;
};

std::vector<Candidate> load_all(const std::vector<PluginRequest>& requests,
                                const PluginFiles& files, const LoadLibrary& load,
                                ConfigErrors& errors) {
  std::vector<Candidate> candidates;
  for (const auto& request : requests) {
    auto& candidate = candidates.emplace_back(Candidate{request, std::nullopt});
    auto path = files.find(request.kind, request.plugin);
    auto library =
        path ? load(*path, request.kind) : Result<PluginLibrary>(std::move(path).error());
    if (library) {
      candidate.library = *std::move(library);
    } else {
      errors.push_back({request.place, std::move(library).error().detail});
    }
  }
  return candidates;
}

/// One id is one plugin: two files that claim it would be told apart by nobody.
void refuse_shared_ids(const std::vector<Candidate>& candidates, ConfigErrors& errors) {
  std::map<std::string_view, std::string> path_of;
  std::set<std::string> refused;
  for (const auto& [request, library] : candidates) {
    if (!library) continue;
    const auto [first, added] = path_of.emplace(library->descriptor->id, library->path);
    if (added || first->second == library->path || !refused.insert(library->path).second) continue;
    errors.push_back({request.place,
                      concat(first->second, " and ", library->path, ": both have the id ",
                             first->first, "; remove one, or name only one in the configuration")});
  }
}

/// The operators plugins that provide a service. What cannot be loaded counts, so that its request
/// says why: a broker without a service that lies in its folder would be a surprise.
std::vector<std::string> services_found(const PluginFiles& files, const LoadLibrary& load) {
  std::vector<std::string> found;
  for (auto& name : files.names("operators")) {
    const auto path = files.find("operators", name);
    const auto library = path ? load(*path, "operators") : Result<PluginLibrary>(path.error());
    if (!library || *library->descriptor->provides != '\0') found.push_back(std::move(name));
  }
  return found;
}

std::set<std::string> words(const char* text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Puts candidates of one kind behind those that provide what they need. What is left over needs
/// what nobody provides, or each other.
void order_by_need(std::vector<Candidate> waiting, std::set<std::string>& provided,
                   std::vector<Candidate>& ordered, ConfigErrors& errors) {
  const auto can_start = [&](const Candidate& candidate) {
    return !candidate.library ||
           std::ranges::includes(provided, words(candidate.library->descriptor->needs));
  };
  for (auto next = std::ranges::find_if(waiting, can_start); next != waiting.end();
       next = std::ranges::find_if(waiting, can_start)) {
    if (next->library) provided.merge(words(next->library->descriptor->provides));
    ordered.push_back(std::move(*next));
    waiting.erase(next);
  }
  for (auto& candidate : waiting) {
    const auto& descriptor = *candidate.library->descriptor;
    std::vector<std::string> missing;
    std::ranges::set_difference(words(descriptor.needs), provided, std::back_inserter(missing));
    errors.push_back(
        {candidate.request.place, concat(descriptor.id, ": needs ", joined(missing),
                                         ", which no plugin that starts before it provides")});
    ordered.push_back(std::move(candidate));
  }
}

std::vector<Candidate> ordered(std::vector<Candidate> candidates, ConfigErrors& errors) {
  std::vector<Candidate> result;
  std::set<std::string> provided;
  for (const auto kind : plugin_kinds) {
    std::vector<Candidate> of_kind;
    std::ranges::copy_if(candidates, std::back_inserter(of_kind),
                         [&](const Candidate& c) { return c.request.kind == kind; });
    order_by_need(std::move(of_kind), provided, result, errors);
  }
  return result;
}

std::vector<DeclaredPlugin> declared(const std::vector<Candidate>& candidates) {
  std::vector<DeclaredPlugin> result;
  for (const auto& [request, library] : candidates) {
    result.push_back({request, library ? library->descriptor->options : nullptr});
  }
  return result;
}

/// What the steps of streams need, in the order of `requests`.
std::vector<std::optional<PluginLibrary>> load_steps(const std::vector<StepRequest>& requests,
                                                     const PluginFiles& files,
                                                     const LoadLibrary& load,
                                                     ConfigErrors& errors) {
  std::vector<PluginRequest> plugins;
  for (const auto& request : requests) plugins.push_back(request.plugin);
  std::vector<std::optional<PluginLibrary>> libraries;
  for (auto& [request, library] : load_all(plugins, files, load, errors)) {
    libraries.push_back(std::move(library));
  }
  return libraries;
}

/// Once everything is right: each step of `streams` has its library, in the same order.
std::vector<PlannedStream> planned(std::vector<Settings::Stream> streams,
                                   std::vector<std::optional<PluginLibrary>> libraries) {
  std::vector<PlannedStream> result;
  auto library = libraries.begin();
  for (auto& stream : streams) {
    auto& planned =
        result.emplace_back(PlannedStream{std::move(stream.spec), {}, to_string(stream.place)});
    for (auto& step : stream.steps) {
      planned.steps.push_back(
          {**library++, std::move(step.options), std::move(step.place), std::move(step.places)});
    }
  }
  return result;
}

}  // namespace

std::expected<Plan, ConfigErrors> make_plan(const Config& config, const MillraceOption* defaults,
                                            const MillraceOption* topics, const LoadLibrary& load) {
  const PluginFiles files(config.plugin_folders());
  ConfigErrors errors;
  const auto services =
      config.chooses_operators() ? std::vector<std::string>() : services_found(files, load);
  auto candidates =
      load_all(config.plugins(files.names("compression"), services), files, load, errors);
  refuse_shared_ids(candidates, errors);
  candidates = ordered(std::move(candidates), errors);

  const auto step_requests = config.stream_steps();
  auto step_libraries = load_steps(step_requests, files, load, errors);
  std::vector<DeclaredStep> steps;
  for (std::size_t at = 0; at < step_requests.size(); ++at) {
    const auto& library = step_libraries[at];
    steps.push_back({step_requests[at], library ? library->descriptor->options : nullptr});
  }

  auto settings = config.check(declared(candidates), defaults, topics, steps);
  if (!settings) errors.insert(errors.end(), settings.error().begin(), settings.error().end());
  if (!errors.empty()) {
    sort_by_place(errors);
    return std::unexpected(std::move(errors));
  }

  Plan plan{.broker = std::move(settings->broker),
            .log = std::move(settings->log),
            .cluster = std::move(settings->cluster),
            .operators = settings->operators,
            .defaults = std::move(settings->defaults),
            .plugins = {},
            .streams = planned(std::move(settings->streams), std::move(step_libraries)),
            .topics = std::move(settings->topics),
            .plugin_folders = config.plugin_folders(),
            .settings = std::move(settings->facts)};
  for (std::size_t at = 0; at < candidates.size(); ++at) {
    auto& [request, options, places] = settings->instances[at];
    plan.plugins.push_back({std::move(request), *std::move(candidates[at].library),
                            std::move(options), std::move(places)});
  }
  return plan;
}

}  // namespace millrace::kernel
