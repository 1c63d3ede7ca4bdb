// A codec straight from its shared object, for tests that need one but are not its contract.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <millrace/codec.h>
#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::testing {

/// The codec of a shared object, which lives as long as the pointer. nullptr, and a failure of the
/// test that runs, when the object offers none.
inline std::shared_ptr<const Codec> load_codec(const std::string& path, OptionValues options = {}) {
  struct Loaded {
    SimWorld world{1};
    std::optional<LoadedPlugin> plugin;
  };
  auto loaded = std::make_shared<Loaded>();
  auto plugin = load_plugin(path, loaded->world.add_node("codec"), std::move(options));
  if (!plugin) {
    ADD_FAILURE() << plugin.error().detail;
    return nullptr;
  }
  loaded->plugin.emplace(*std::move(plugin));
  const auto& codecs = loaded->plugin->registered().codecs;
  if (codecs.empty()) {
    ADD_FAILURE() << path << " registers no codec";
    return nullptr;
  }
  return {loaded, codecs.front().get()};
}

}  // namespace millrace::testing
