#include "kernel/streams/stream_trial.h"

#include <optional>
#include <string>
#include <utility>

#include "kernel/config/text.h"
#include "kernel/streams/operator_plugin.h"
#include "kernel/streams/watchdog.h"

namespace millrace::kernel {

namespace {

const Duration trial_limit = std::chrono::seconds(30);

// What an operator answered, in time.
struct Trial {
  std::optional<Error> wrong;
};

Trial try_step(const StreamSpec& stream, PlannedStream::Step step, const std::string& instance,
               std::shared_ptr<const HostSettings> settings, HostServices services) {
  const auto plugin =
      OperatorPlugin::start(std::move(step), instance, std::move(settings), std::move(services));
  if (!plugin) return {plugin.error()};
  const auto made = (*plugin)->make();
  if (!made) return {made.error()};
  const auto writable = (*plugin)->check_topics(stream);
  if (!writable) return {writable.error()};
  return {};
}

}  // namespace

Task<std::vector<Error>> try_steps(PlannedStream planned,
                                   std::shared_ptr<const HostSettings> settings,
                                   HostServices services) {
  std::vector<Error> wrong;
  for (std::size_t at = 0; at < planned.steps.size(); ++at) {
    const auto& step = planned.steps[at];
    const auto instance = concat(planned.spec.name, ".", planned.spec.steps[at].name);
    auto work = [spec = planned.spec, step, instance, settings, services]() -> Result<Trial> {
      return try_step(spec, step, instance, settings, services);
    };
    auto trying = run_watched(services.environment, trial_limit, std::move(work));
    auto tried = co_await std::move(trying);
    if (!tried) {
      const ConfigError late{
          step.place, concat(step.library.path, ": (", instance, "): ", tried.error().detail)};
      wrong.push_back({tried.error().code, to_string(late)});
    } else if (tried->wrong) {
      wrong.push_back(*std::move(tried->wrong));
    }
  }
  co_return std::move(wrong);
}

}  // namespace millrace::kernel
