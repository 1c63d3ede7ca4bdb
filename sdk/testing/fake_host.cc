#include <millrace/testing/fake_host.h>

#include <dlfcn.h>

namespace millrace::testing {

namespace {

template <class T>
Result<> keep(std::unique_ptr<T>& place, std::unique_ptr<T> added) {
  if (place) return Error{Errc::conflict, "the plugin registered a second object of its kind"};
  place = std::move(added);
  return {};
}

}  // namespace

Counter& KeptMetrics::counter(std::string_view name, std::string_view help) {
  return counter(name, help, {});
}

Gauge& KeptMetrics::gauge(std::string_view name, std::string_view help) {
  return gauge(name, help, {});
}

Counter& KeptMetrics::counter(std::string_view name, std::string_view, MetricLabels labels) {
  const std::lock_guard lock(mutex_);
  return counters_[{std::string(name), std::move(labels)}];
}

Gauge& KeptMetrics::gauge(std::string_view name, std::string_view, MetricLabels labels) {
  const std::lock_guard lock(mutex_);
  return gauges_[{std::string(name), std::move(labels)}];
}

Histogram& KeptMetrics::histogram(std::string_view name, std::string_view, MetricLabels labels) {
  const std::lock_guard lock(mutex_);
  return histograms_[{std::string(name), std::move(labels)}];
}

FakeHost::FakeHost(Environment& environment, OptionValues options, HostSettings settings)
    : environment_(environment),
      options_(std::move(options)),
      settings_(std::move(settings)),
      log_(kept_log_, "test") {}

std::string_view FakeHost::setting(std::string_view name) const noexcept {
  const auto found = settings_.find(name);
  return found == settings_.end() ? std::string_view() : found->second;
}

Result<> FakeRegistrar::add(std::unique_ptr<Codec> codec) {
  codecs.push_back(std::move(codec));
  return {};
}
Result<> FakeRegistrar::add(std::unique_ptr<Storage> added) {
  return keep(storage, std::move(added));
}
Result<> FakeRegistrar::add(std::unique_ptr<Coordination> added) {
  return keep(coordination, std::move(added));
}
Result<> FakeRegistrar::add(std::unique_ptr<Transport> added) {
  return keep(transport, std::move(added));
}
Result<> FakeRegistrar::add(std::unique_ptr<AggregateFactory> added) {
  aggregates.push_back(std::move(added));
  return {};
}
Result<> FakeRegistrar::add(std::unique_ptr<OperatorFactory> added) {
  return keep(operator_factory, std::move(added));
}

Result<LoadedPlugin> load_plugin(const std::string& path, Environment& environment,
                                 OptionValues options, HostSettings settings) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{Errc::not_found, ::dlerror()};
  const auto* descriptor =
      static_cast<const MillraceDescriptor*>(::dlsym(library, MILLRACE_DESCRIPTOR_SYMBOL));
  if (descriptor == nullptr) {
    return Error{Errc::incompatible, path + ": exports no " MILLRACE_DESCRIPTOR_SYMBOL};
  }

  LoadedPlugin loaded;
  loaded.descriptor_ = descriptor;
  options.merge(defaults_of(descriptor->options));
  loaded.host_ = std::make_unique<FakeHost>(environment, std::move(options), std::move(settings));
  loaded.plugin_ = {descriptor->create(), {descriptor}};
  if (!loaded.plugin_) return Error{Errc::internal, path + ": create() failed"};
  loaded.registered_ = std::make_unique<FakeRegistrar>();
  MR_CHECK(loaded.plugin_->start(*loaded.registered_, *loaded.host_));
  return loaded;
}

}  // namespace millrace::testing
