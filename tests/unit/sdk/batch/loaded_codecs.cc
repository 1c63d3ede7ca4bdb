#include "tests/unit/sdk/batch/loaded_codecs.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <millrace/plugin.h>
#include <millrace/system_plugin.h>

namespace millrace::testing {

namespace {

[[noreturn]] void give_up(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), why.c_str());
  std::abort();
}

class CodecRegistrar final : public Registrar {
 public:
  Result<> add(std::unique_ptr<Codec> codec) override {
    codecs_.add(*codec);
    kept_.push_back(std::move(codec));
    return {};
  }
  Result<> add(std::unique_ptr<Storage>) override { return other_kind(); }
  Result<> add(std::unique_ptr<Coordination>) override { return other_kind(); }
  Result<> add(std::unique_ptr<Transport>) override { return other_kind(); }
  const Codecs& codecs() const noexcept { return codecs_; }

 private:
  static Error other_kind() { return {Errc::invalid_argument, "not a codec"}; }

  Codecs codecs_;
  std::vector<std::unique_ptr<Codec>> kept_;
};

// A codec has no options and asks its host for nothing.
class NoHost final : public Host {
 public:
  std::string_view instance() const noexcept override { return "test"; }
  const Options& options() const noexcept override { return options_; }
  Environment& environment() noexcept override { give_up("codec", "asks for the environment"); }
  const Log& log() const noexcept override { give_up("codec", "asks for the log"); }
  Metrics& metrics() noexcept override { give_up("codec", "asks for metrics"); }
  std::string_view setting(std::string_view) const noexcept override { return {}; }

 private:
  Options options_;
};

void load(const std::string& name, Registrar& registrar, Host& host) {
  const auto path = std::string(MILLRACE_PLUGIN_DIR "/compression/") + name + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) give_up(path, dlerror());
  const auto* descriptor =
      static_cast<const MillraceDescriptor*>(dlsym(library, "millrace_plugin_v1"));
  if (!descriptor) give_up(path, "no descriptor");
  auto* plugin = descriptor->create();
  if (!plugin) give_up(path, "create() failed");
  if (const auto started = plugin->start(registrar, host); !started) {
    give_up(path, to_string(started.error()));
  }
}

}  // namespace

const Codecs& loaded_codecs() {
  static NoHost host;
  static CodecRegistrar registrar;
  static const bool loaded = [] {
    for (const auto* name : {"gzip", "snappy", "lz4", "zstd"}) load(name, registrar, host);
    return true;
  }();
  static_cast<void>(loaded);
  return registrar.codecs();
}

}  // namespace millrace::testing
