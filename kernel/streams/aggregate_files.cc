#include "kernel/streams/aggregate_files.h"

#include <algorithm>
#include <utility>

#include <millrace/coordination.h>
#include <millrace/operator.h>
#include <millrace/storage.h>
#include <millrace/transport.h>

#include "kernel/config/option_value.h"
#include "kernel/config/text.h"
#include "kernel/streams/operator_file.h"
#include "kernel/streams/stream_topology.h"
#include "kernel/streams/watchdog.h"

namespace millrace::kernel {

namespace {

const Duration load_limit = std::chrono::seconds(30);

/// Takes the aggregates of a plugin; its operator has its place in streams.
class AggregateRegistrar final : public Registrar {
 public:
  Result<> add(std::unique_ptr<Codec>) override { return other("a codec"); }
  Result<> add(std::unique_ptr<Storage>) override { return other("a storage"); }
  Result<> add(std::unique_ptr<Coordination>) override { return other("a coordination"); }
  Result<> add(std::unique_ptr<Transport>) override { return other("a transport"); }
  Result<> add(std::unique_ptr<OperatorFactory>) override { return {}; }
  Result<> add(std::unique_ptr<AggregateFactory> factory) override {
    if (!factory) return Error{Errc::invalid_argument, "registers a null aggregate"};
    factories.push_back(std::move(factory));
    return {};
  }

  std::vector<std::unique_ptr<AggregateFactory>> factories;

 private:
  static Error other(std::string_view what) {
    return {Errc::invalid_argument, concat("is an operators plugin and registers ", what)};
  }
};

/// A plugin object, and what it has registered; in the order of creation.
struct RunningPlugin {
  RunningPlugin(const PluginLibrary& library, std::string instance, Options options,
                std::shared_ptr<const HostSettings> settings, HostServices services)
      : host(std::move(instance), std::move(options), std::move(settings), std::move(services),
             library.descriptor->id),
        plugin(nullptr, library.descriptor->destroy) {}

  InstanceHost host;
  std::unique_ptr<Plugin, void (*)(Plugin*) noexcept> plugin;
  AggregateRegistrar registered;
};

/// What is asked for.
struct Wanted {
  AggregateDeclaration running;
  PlannedPlugin before;  // the plugin that offers it
  std::string file;
};

Error refused(const std::string& file, std::string_view reason) {
  return {Errc::invalid_argument, concat(file, ": ", reason)};
}

/// What can be told before any of its code is called.
Result<> check_plugin(const Wanted& wanted, const PluginLibrary& library) {
  const std::string_view id = library.descriptor->id;
  const std::string_view before = wanted.before.library.descriptor->id;
  if (id != before) {
    return refused(wanted.file, concat("is ", id, ", expected another version of ", before,
                                       ", whose aggregate ", wanted.running.name, " is"));
  }
  for (const auto* provides :
       {wanted.before.library.descriptor->provides, library.descriptor->provides}) {
    if (*provides == '\0') continue;
    return refused(wanted.file, concat(id, " offers the service ", provides,
                                       ", which a running broker holds on to: put the file in "
                                       "place of ",
                                       wanted.before.library.path, " and restart the broker"));
  }
  return {};
}

/// What the plugin was started with, as far as this version knows of it.
Result<Options> options_of(const Wanted& wanted, const PluginLibrary& library) {
  std::map<std::string, OptionValue, std::less<>> known;
  for (const auto& [name, value] : wanted.before.options.all()) {
    if (find_option(library.descriptor->options, name) != nullptr) known.emplace(name, value);
  }
  auto options =
      checked_options(known, library, concat("[operators.", wanted.before.request.instance, "]"));
  if (!options) return refused(wanted.file, options.error().detail);
  return options;
}

std::string_view text_of(Placement placement) {
  return placement == Placement::own_log ? "in a log of its own" : "beside partitions of users";
}

Result<> check_declaration(const Wanted& wanted, const AggregateDeclaration& found) {
  const auto& running = wanted.running;
  const auto differs = [&](std::string_view what, std::string_view there, std::string_view here) {
    return refused(wanted.file, concat("its aggregate ", running.name, " ", what, " ", there,
                                       ", that which runs ", here));
  };
  if (found.topic != running.topic)
    return differs("keeps its events in", found.topic, running.topic);
  if (found.placement != running.placement) {
    return differs("lives", text_of(found.placement), text_of(running.placement));
  }
  return {};
}

/// [a worker]
Result<AggregateVersion> start_plugin(const Wanted& wanted, const PluginLibrary& library,
                                      std::shared_ptr<const HostSettings> settings,
                                      const HostServices& services) {
  MR_CHECK(check_plugin(wanted, library));
  MR_TRY(auto options, options_of(wanted, library));
  auto made = std::make_shared<RunningPlugin>(library, wanted.before.request.instance,
                                              std::move(options), std::move(settings), services);
  made->plugin.reset(library.descriptor->create());
  if (!made->plugin) {
    return refused(wanted.file, "create() returned null: its constructor has failed");
  }
  const auto started =
      without_exceptions([&] { return made->plugin->start(made->registered, made->host); });
  if (!started) return refused(wanted.file, concat("start() failed: ", started.error().detail));
  std::vector<std::string> names;
  for (const auto& factory : made->registered.factories) {
    const auto declared = without_exceptions(
        [&]() -> Result<AggregateDeclaration> { return factory->declaration(); });
    if (!declared) return refused(wanted.file, declared.error().detail);
    names.push_back(declared->name);
    if (declared->name != wanted.running.name) continue;
    MR_CHECK(check_declaration(wanted, *declared));
    return AggregateVersion{{made, factory.get()}, library.descriptor->version, wanted.file};
  }
  return refused(wanted.file, concat("it has no aggregate ", wanted.running.name, "; it has ",
                                     names.empty() ? "none" : joined(names)));
}

Result<AggregateVersion> load_file(FileSystem& files, const std::string& data, const Wanted& wanted,
                                   std::shared_ptr<const HostSettings> settings,
                                   const HostServices& services) {
  MR_TRY(const auto copy, load_private_copy(files, wanted.file, data, services.trial));
  auto started = start_plugin(wanted, copy.library, std::move(settings), services);
  if (started) return started;
  forget_private_copy(files, copy);
  return about_original(std::move(started).error(), copy.library.path, wanted.file);
}

}  // namespace

AggregateFiles::AggregateFiles(HostServices services, std::shared_ptr<const HostSettings> settings,
                               std::vector<PlannedPlugin> running, std::string data)
    : services_(std::move(services)),
      settings_(std::move(settings)),
      running_(std::move(running)),
      data_(std::move(data)) {}

Task<AggregateVersion> AggregateFiles::load(AggregateDeclaration running, std::string plugin,
                                            std::string file) {
  const auto before = std::ranges::find_if(running_, [&plugin](const PlannedPlugin& one) {
    return one.library.descriptor->id == plugin;
  });
  if (before == running_.end()) co_return Error{Errc::not_found, "there is no plugin " + plugin};
  auto work = [wanted = Wanted{std::move(running), *before, std::move(file)}, data = data_,
               settings = settings_, services = services_] {
    return load_file(services.environment.files(), data, wanted, settings, services);
  };
  auto loading = run_watched(services_.environment, load_limit, std::move(work));
  co_return co_await std::move(loading);
}

}  // namespace millrace::kernel
