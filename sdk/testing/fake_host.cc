#include <millrace/testing/fake_host.h>

#include <dlfcn.h>

#include <algorithm>
#include <charconv>

namespace millrace::testing {

namespace {

template <class T>
T number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  MR_ASSERT(error == std::errc{} && end == text.data() + text.size());
  return value;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    auto part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

OptionValue default_of(const MillraceOption& option) {
  const std::string_view text = option.default_value;
  switch (option.type) {
    case MILLRACE_OPTION_INTEGER: return number_of<std::int64_t>(text);
    case MILLRACE_OPTION_NUMBER: return number_of<double>(text);
    case MILLRACE_OPTION_BOOLEAN: return text == "true";
    case MILLRACE_OPTION_TEXTS: return split(text);
    default: return std::string(text);
  }
}

template <class T>
Result<> keep(std::unique_ptr<T>& place, std::unique_ptr<T> added) {
  if (place) return Error{Errc::conflict, "the plugin registered a second object of its kind"};
  place = std::move(added);
  return {};
}

}  // namespace

void KeptLog::write(LogLevel level, std::string_view subsystem, std::string_view message,
                    std::initializer_list<LogField> fields) noexcept {
  auto line = std::string(name_of(level)) + " " + std::string(subsystem) + ": ";
  line += message;
  for (const auto& field : fields) {
    line += " ";
    line += field.name;
    line += "=" + field.value;
  }
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
}

std::vector<std::string> KeptLog::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

bool KeptLog::contains(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(lines_, [text](const auto& line) { return line.contains(text); });
}

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

OptionValues defaults_of(const MillraceOption* declared) {
  OptionValues values;
  for (const auto* option = declared; option->name != nullptr; ++option) {
    if (option->default_value != nullptr) values.emplace(option->name, default_of(*option));
  }
  return values;
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
