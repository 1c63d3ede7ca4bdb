#include "kernel/cli/context.h"
#include "kernel/config/config.h"
#include "kernel/host/plan.h"
#include "kernel/host/plugin_host.h"
#include "kernel/log/metrics_registry.h"
#include "kernel/log/stderr_log.h"

namespace millrace::kernel::cli {

struct LoadedCodecs::Parts {
  StderrLog log{{.others = LogLevel::warning, .of = {}}, "text"};
  MetricsRegistry metrics;
  std::unique_ptr<PluginHost> host;
};

LoadedCodecs::LoadedCodecs(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LoadedCodecs::~LoadedCodecs() = default;
LoadedCodecs::LoadedCodecs(LoadedCodecs&&) noexcept = default;
LoadedCodecs& LoadedCodecs::operator=(LoadedCodecs&&) noexcept = default;

Codecs LoadedCodecs::codecs() const noexcept { return parts_->host->codecs(); }

Result<LoadedCodecs> LoadedCodecs::load(const Context& context, Environment& environment) {
  const PluginFiles files(context.plugin_folders);
  const auto config = Config::load({});
  if (!config) return to_error(config.error());

  std::vector<PluginLibrary> libraries;
  std::vector<DeclaredPlugin> declared;
  for (auto& request : config->plugins(files.names("compression"), {})) {
    if (request.kind != "compression") continue;
    MR_TRY(const auto path, files.find(request.kind, request.plugin));
    MR_TRY(auto library, load_plugin(path, request.kind));
    declared.push_back({std::move(request), library.descriptor->options});
    libraries.push_back(std::move(library));
  }
  auto settings = config->check(declared, detail::no_options, detail::no_options);
  if (!settings) return to_error(settings.error());

  std::vector<PlannedPlugin> planned;
  for (std::size_t at = 0; at < libraries.size(); ++at) {
    auto& instance = settings->instances[at];
    planned.push_back(
        {std::move(instance.request), std::move(libraries[at]), std::move(instance.options)});
  }
  auto parts = std::make_unique<Parts>();
  const HostServices services{environment, parts->log, parts->metrics};
  parts->host = std::make_unique<PluginHost>(
      std::move(planned), std::map<std::string, std::string, std::less<>>{}, services);
  MR_CHECK(parts->host->start("compression"));
  return LoadedCodecs(std::move(parts));
}

}  // namespace millrace::kernel::cli
