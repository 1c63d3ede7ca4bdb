#include "kernel/streams/operator_plugin.h"

#include <millrace/aggregate.h>
#include <millrace/coordination.h>
#include <millrace/storage.h>
#include <millrace/transport.h>

#include "kernel/config/stream_check.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

/// Takes the one factory of a step.
class StepRegistrar final : public Registrar {
 public:
  Result<> add(std::unique_ptr<Codec>) override { return other("a codec"); }
  Result<> add(std::unique_ptr<Storage>) override { return other("a storage"); }
  Result<> add(std::unique_ptr<Coordination>) override { return other("a coordination"); }
  Result<> add(std::unique_ptr<Transport>) override { return other("a transport"); }
  Result<> add(std::unique_ptr<AggregateFactory>) override { return other("an aggregate"); }
  Result<> add(std::unique_ptr<OperatorFactory> object) override {
    if (!object) return Error{Errc::invalid_argument, "registers a null operator factory"};
    if (factory) return Error{Errc::invalid_argument, "registers a second operator factory"};
    factory = std::move(object);
    return {};
  }

  std::unique_ptr<OperatorFactory> factory;

 private:
  static Error other(std::string_view what) {
    return {Errc::invalid_argument, concat("is a step of a stream and registers ", what)};
  }
};

}  // namespace

// In the order of creation.
struct OperatorPlugin::Parts {
  Parts(PlannedStream::Step step, const std::string& instance,
        std::shared_ptr<const HostSettings> settings, HostServices services)
      : library(std::move(step.library)),
        place(std::move(step.place)),
        places(std::move(step.places)),
        host(instance, std::move(step.options), std::move(settings), std::move(services),
             concat("stream.", instance)),
        plugin(nullptr, library.descriptor->destroy) {}

  Error failed(Errc code, std::string_view what, std::string_view reason) const {
    ConfigError error{place_of_reason(reason, places, place),
                      concat(library.path, ": ", library.descriptor->id, " (", host.instance(),
                             "): ", what, reason)};
    return {code, to_string(error)};
  }
  Error failed(Errc code, std::string_view reason) const { return failed(code, "", reason); }

  PluginLibrary library;
  ConfigPlace place;
  OptionPlaces places;
  InstanceHost host;
  std::unique_ptr<Plugin, void (*)(Plugin*) noexcept> plugin;
  StepRegistrar registered;
};

OperatorPlugin::OperatorPlugin(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
OperatorPlugin::~OperatorPlugin() = default;

const PluginLibrary& OperatorPlugin::library() const noexcept { return parts_->library; }

Result<std::shared_ptr<OperatorPlugin>> OperatorPlugin::start(
    PlannedStream::Step step, const std::string& instance,
    std::shared_ptr<const HostSettings> settings, HostServices services) {
  auto parts =
      std::make_unique<Parts>(std::move(step), instance, std::move(settings), std::move(services));
  auto& plugin = parts->plugin;
  plugin.reset(parts->library.descriptor->create());
  if (!plugin) {
    return parts->failed(Errc::internal, "create() returned null: its constructor has failed");
  }
  const auto started =
      without_exceptions([&] { return plugin->start(parts->registered, parts->host); });
  if (!started) {
    return parts->failed(started.error().code, "start() failed: ", started.error().detail);
  }
  if (!parts->registered.factory) {
    return parts->failed(Errc::invalid_argument,
                         "it registers no operator: it cannot be a step of a stream");
  }
  return std::shared_ptr<OperatorPlugin>(new OperatorPlugin(std::move(parts)));
}

Result<std::unique_ptr<Operator>> OperatorPlugin::make() {
  const OperatorSetup setup{parts_->host.options(), parts_->host.log()};
  auto made = without_exceptions([&] { return parts_->registered.factory->make(setup); });
  if (!made) return parts_->failed(made.error().code, made.error().detail);
  if (!*made) return parts_->failed(Errc::internal, "make() returned null");
  return made;
}

Result<> OperatorPlugin::check_topics(const StreamSpec& stream) {
  auto* found = parts_->plugin->extension(OperatorTopics::extension_id);
  if (found == nullptr) return {};
  const auto& named = *static_cast<OperatorTopics*>(found);
  const auto topics = without_exceptions([&] { return named.topics(parts_->host.options()); });
  if (!topics) return parts_->failed(topics.error().code, topics.error().detail);
  for (const auto& topic : *topics) {
    if (const auto wrong = check_output(stream, topic)) {
      return parts_->failed(Errc::invalid_argument, *wrong);
    }
  }
  return {};
}

}  // namespace millrace::kernel
