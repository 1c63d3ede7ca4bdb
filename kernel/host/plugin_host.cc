#include "kernel/host/plugin_host.h"

#include <algorithm>
#include <iterator>
#include <ranges>

#include <millrace/aggregate.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/operator.h>
#include <millrace/storage.h>
#include <millrace/transport.h>

#include "kernel/config/text.h"
#include "kernel/host/levelled_codec.h"

namespace millrace::kernel {

namespace {

constexpr std::string_view own_prefix = "org.millrace.";

/// Subsystem of a plugin's log lines: "storage.filelog"; a third party's id in full.
std::string subsystem_of(std::string_view id) {
  return std::string(id.starts_with(own_prefix) ? id.substr(own_prefix.size()) : id);
}

/// What one instance has registered: of its own kind only.
class Registered final : public Registrar {
 public:
  explicit Registered(std::string_view kind) : kind_(kind) {}

  Result<> add(std::unique_ptr<Codec> codec) override {
    MR_CHECK(check("compression", codec == nullptr));
    codecs.push_back(std::make_unique<LevelledCodec>(std::move(codec)));
    return {};
  }
  Result<> add(std::unique_ptr<Storage> object) override {
    return add_one("storage", storage, std::move(object));
  }
  Result<> add(std::unique_ptr<Coordination> object) override {
    return add_one("coordination", coordination, std::move(object));
  }
  Result<> add(std::unique_ptr<Transport> object) override {
    return add_one("transport", transport, std::move(object));
  }
  Result<> add(std::unique_ptr<AggregateFactory> aggregate) override {
    MR_CHECK(check("operators", aggregate == nullptr));
    aggregates.push_back(std::move(aggregate));
    return {};
  }
  Result<> add(std::unique_ptr<OperatorFactory> object) override {
    return add_one("operators", operator_factory, std::move(object));
  }

  bool empty() const noexcept {
    return codecs.empty() && !storage && !coordination && !transport && aggregates.empty() &&
           !operator_factory;
  }

  std::vector<std::unique_ptr<LevelledCodec>> codecs;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Coordination> coordination;
  std::unique_ptr<Transport> transport;
  std::vector<std::unique_ptr<AggregateFactory>> aggregates;
  std::unique_ptr<OperatorFactory> operator_factory;

 private:
  Result<> check(std::string_view kind, bool null) const {
    if (null) return Error{Errc::invalid_argument, concat("registers a null ", kind)};
    if (kind == kind_) return {};
    return Error{Errc::invalid_argument,
                 concat("is a ", kind_, " plugin and registers a ", kind, " object")};
  }
  template <class T>
  Result<> add_one(std::string_view kind, std::unique_ptr<T>& slot, std::unique_ptr<T> object) {
    MR_CHECK(check(kind, object == nullptr));
    if (slot) {
      return Error{Errc::invalid_argument,
                   concat("registers a second ", kind, " object; one per instance")};
    }
    slot = std::move(object);
    return {};
  }

  std::string_view kind_;
};

}  // namespace

/// A plugin object, what it was given and what it registered. Members are in the order of creation.
class PluginHost::Instance {
 public:
  Instance(const PlannedPlugin& planned, std::shared_ptr<const HostSettings> settings,
           HostServices services)
      : planned_(planned),
        host_(planned.request.instance, planned.options, std::move(settings), std::move(services),
              subsystem_of(planned.library.descriptor->id)),
        plugin_(nullptr, planned.library.descriptor->destroy),
        registered_(planned.request.kind) {}

  Result<> start() {
    const auto& descriptor = *planned_.library.descriptor;
    plugin_.reset(descriptor.create());
    if (!plugin_) {
      return failed(Errc::internal, "create() returned null: its constructor has failed");
    }
    auto started = without_exceptions([this] { return plugin_->start(registered_, host_); });
    if (!started) {
      return failed(started.error().code, "start() failed: ", started.error().detail);
    }
    if (registered_.empty() && planned_.request.kind != "operators") {
      return failed(Errc::internal,
                    concat("start() registered no ", planned_.request.kind, " object"));
    }
    if (!registered_.codecs.empty()) {
      const auto* levels = static_cast<const CodecLevels*>(extension(CodecLevels::extension_id));
      for (const auto& codec : registered_.codecs) codec->use(levels);
    }
    return {};
  }

  const std::string& kind() const noexcept { return planned_.request.kind; }
  const std::string& name() const noexcept { return planned_.request.instance; }
  const Registered& registered() const noexcept { return registered_; }
  std::string_view id() const noexcept { return planned_.library.descriptor->id; }
  void* extension(std::string_view wanted) const noexcept { return plugin_->extension(wanted); }
  PluginFact fact() const {
    const auto& descriptor = *planned_.library.descriptor;
    return {kind(), name(), descriptor.id, descriptor.version, planned_.library.path};
  }

 private:
  Error failed(Errc code, std::string_view what, std::string_view reason) const {
    ConfigError error{place_of_reason(reason, planned_.places, planned_.request.place),
                      concat(planned_.library.path, ": ", planned_.library.descriptor->id,
                             " (instance ", name(), "): ", what, reason)};
    return {code, to_string(error)};
  }
  Error failed(Errc code, std::string_view reason) const { return failed(code, "", reason); }

  const PlannedPlugin planned_;
  InstanceHost host_;
  std::unique_ptr<Plugin, void (*)(Plugin*) noexcept> plugin_;
  Registered registered_;
};

PluginHost::PluginHost(std::vector<PlannedPlugin> plugins, HostSettings settings,
                       HostServices services)
    : plugins_(std::move(plugins)),
      settings_(std::make_shared<const HostSettings>(std::move(settings))),
      services_(std::move(services)) {}

PluginHost::~PluginHost() { stop(); }

Result<> PluginHost::start(std::string_view kind) {
  for (const auto& planned : plugins_) {
    if (planned.request.kind == kind) MR_CHECK(start(planned));
  }
  return {};
}

std::vector<Error> PluginHost::try_start(std::string_view kind) {
  std::vector<Error> wrong;
  for (const auto& planned : plugins_) {
    if (planned.request.kind != kind) continue;
    auto started = start(planned);
    if (!started) wrong.push_back(std::move(started).error());
  }
  return wrong;
}

Result<> PluginHost::start(const PlannedPlugin& planned) {
  auto instance = std::make_unique<Instance>(planned, settings_, services_);
  MR_CHECK(instance->start());
  for (const auto& codec : instance->registered().codecs) {
    const auto* other = codecs().find(codec->id());
    if (other == nullptr) continue;
    return Error{
        Errc::conflict,
        concat(planned.library.path, ": ", planned.library.descriptor->id, ": codec ",
               static_cast<int>(codec->id()),
               " is already provided by another plugin; name one of them in compression.plugins")};
  }
  running_.push_back(std::move(instance));
  return {};
}

Result<> PluginHost::add(const PlannedPlugin& planned) {
  MR_CHECK(start(planned));
  plugins_.push_back(planned);
  return {};
}

void PluginHost::retire(std::string_view kind, std::string_view instance) {
  std::erase_if(plugins_, [&](const PlannedPlugin& one) {
    return one.request.kind == kind && one.request.instance == instance;
  });
  const auto found = std::ranges::find_if(
      running_, [&](const auto& one) { return one->kind() == kind && one->name() == instance; });
  if (found == running_.end()) return;
  retired_.push_back(std::move(*found));
  running_.erase(found);
}

void PluginHost::stop(std::string_view kind) noexcept {
  std::erase_if(retired_, [kind](const auto& one) { return one->kind() == kind; });
  for (std::size_t at = running_.size(); at-- > 0;) {
    if (running_[at]->kind() == kind) {
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

void PluginHost::stop() noexcept {
  retired_.clear();
  while (!running_.empty()) running_.pop_back();
}

Codecs PluginHost::codecs() const noexcept {
  Codecs codecs;
  for (const auto& instance : running_) {
    for (const auto& codec : instance->registered().codecs) codecs.add(*codec);
  }
  return codecs;
}

Storage& PluginHost::storage() const noexcept {
  const auto found = std::ranges::find(running_, "storage", &Instance::kind);
  MR_ASSERT(found != running_.end());
  return *(*found)->registered().storage;
}

Coordination& PluginHost::coordination() const noexcept {
  const auto found = std::ranges::find(running_, "coordination", &Instance::kind);
  MR_ASSERT(found != running_.end());
  return *(*found)->registered().coordination;
}

std::vector<NamedTransport> PluginHost::transports() const {
  std::vector<NamedTransport> result;
  for (const auto& instance : running_) {
    if (auto* transport = instance->registered().transport.get()) {
      result.push_back({instance->name(), transport});
    }
  }
  return result;
}

std::vector<NamedAggregate> PluginHost::aggregates() const {
  std::vector<NamedAggregate> result;
  for (const auto& instance : running_) {
    for (const auto& factory : instance->registered().aggregates) {
      result.push_back({instance->fact(), factory.get()});
    }
  }
  return result;
}

std::vector<NamedExtension> PluginHost::extensions(std::string_view id) const {
  std::vector<NamedExtension> result;
  for (const auto& instance : running_) {
    auto* extension = instance->extension(id);
    if (extension) result.push_back({std::string(instance->id()), extension});
  }
  return result;
}

void* PluginHost::extension_of(std::string_view kind, std::string_view instance,
                               std::string_view id) const {
  for (const auto& one : running_) {
    if (one->kind() == kind && one->name() == instance) return one->extension(id);
  }
  return nullptr;
}

std::vector<PlannedPlugin> PluginHost::planned(std::string_view kind) const {
  std::vector<PlannedPlugin> result;
  std::ranges::copy_if(plugins_, std::back_inserter(result),
                       [kind](const PlannedPlugin& one) { return one.request.kind == kind; });
  return result;
}

std::vector<PluginFact> PluginHost::facts() const {
  std::vector<PluginFact> facts;
  for (const auto& instance : running_) facts.push_back(instance->fact());
  return facts;
}

}  // namespace millrace::kernel
