// A codec straight from its shared object, for tests: opens the door of the plugin as the kernel
// does, without the kernel.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <millrace/plugin.h>

namespace millrace::testing {

/// Options as declared: integers with their default, or with a value of the test's.
inline Options integer_options(const MillraceOption* declared,
                               std::map<std::string, OptionValue, std::less<>> values = {}) {
  for (; declared->name; ++declared) {
    if (!declared->default_value || declared->type != MILLRACE_OPTION_INTEGER) continue;
    values.try_emplace(declared->name, std::int64_t{std::atoll(declared->default_value)});
  }
  return Options(std::move(values));
}

/// One plugin with what it registered; destroyed in the right order. The library stays mapped.
class LoadedCodec {
 public:
  LoadedCodec(const std::string& path, std::map<std::string, OptionValue, std::less<>> options) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      ADD_FAILURE() << ::dlerror();
      return;
    }
    const auto* symbol = ::dlsym(library, MILLRACE_DESCRIPTOR_SYMBOL);
    if (!symbol) {
      ADD_FAILURE() << path << " exports no " << MILLRACE_DESCRIPTOR_SYMBOL;
      return;
    }
    const auto& descriptor = *static_cast<const MillraceDescriptor*>(symbol);
    EXPECT_STREQ(descriptor.kind, "compression");
    plugin_ = {descriptor.create(), descriptor.destroy};
    CodecHost host(integer_options(descriptor.options, std::move(options)));
    CodecRegistrar registrar(codec_);
    const auto started = plugin_->start(registrar, host);
    EXPECT_TRUE(started) << started.error().detail;
  }

  const Codec* codec() const { return codec_.get(); }

 private:
  class Nowhere final : public LogSink, public Metrics {
   public:
    bool wants(LogLevel, std::string_view) const noexcept override { return false; }
    void write(LogLevel, std::string_view, std::string_view,
               std::initializer_list<LogField>) noexcept override {}
    Counter& counter(std::string_view, std::string_view) override { return counter_; }
    Gauge& gauge(std::string_view, std::string_view) override { return gauge_; }

   private:
    Counter counter_;
    Gauge gauge_;
  };

  class CodecHost final : public Host {
   public:
    explicit CodecHost(Options options) : options_(std::move(options)) {}
    std::string_view instance() const noexcept override { return "codec"; }
    const Options& options() const noexcept override { return options_; }
    /// A codec does no I/O.
    Environment& environment() noexcept override { std::abort(); }
    const Log& log() const noexcept override { return log_; }
    Metrics& metrics() noexcept override { return nowhere_; }
    std::string_view setting(std::string_view) const noexcept override { return {}; }

   private:
    Nowhere nowhere_;
    Log log_{nowhere_, "codec"};
    Options options_;
  };

  class CodecRegistrar final : public Registrar {
   public:
    explicit CodecRegistrar(std::unique_ptr<Codec>& codec) : codec_(codec) {}
    Result<> add(std::unique_ptr<Codec> codec) override {
      codec_ = std::move(codec);
      return {};
    }
    Result<> add(std::unique_ptr<Storage>) override { return no_codec(); }
    Result<> add(std::unique_ptr<Coordination>) override { return no_codec(); }
    Result<> add(std::unique_ptr<Transport>) override { return no_codec(); }

   private:
    static Error no_codec() { return {Errc::invalid_argument, "not a codec"}; }
    std::unique_ptr<Codec>& codec_;
  };

  std::unique_ptr<Plugin, void (*)(Plugin*)> plugin_{nullptr, nullptr};
  std::unique_ptr<Codec> codec_;  // before the plugin that made it
};

/// nullptr, and a failure of the test that runs, when it cannot be loaded.
inline std::shared_ptr<const Codec> load_codec(
    const std::string& path, std::map<std::string, OptionValue, std::less<>> options = {}) {
  auto loaded = std::make_shared<LoadedCodec>(path, std::move(options));
  const auto* codec = loaded->codec();
  if (!codec) return nullptr;
  return {std::move(loaded), codec};
}

}  // namespace millrace::testing
