// A stream operator straight from its shared object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <millrace/operator.h>
#include <millrace/testing/fake_host.h>
#include <millrace/testing/operator_driver.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::testing {

struct LoadedOperator {
  SimWorld world{1};
  std::optional<LoadedPlugin> plugin;

  OperatorFactory& factory() { return *plugin->registered().operator_factory; }
  Result<OperatorDriver> drive(OptionValues options = {}) {
    return OperatorDriver::make(factory(), std::move(options), plugin->descriptor().options);
  }
};

/// nullptr, and a failure of the test that runs, when the object offers no operator. Drivers do not
/// outlive it.
inline std::shared_ptr<LoadedOperator> load_operator(const std::string& path) {
  auto loaded = std::make_shared<LoadedOperator>();
  auto plugin = load_plugin(path, loaded->world.add_node("operator"));
  if (!plugin) {
    ADD_FAILURE() << plugin.error().detail;
    return nullptr;
  }
  loaded->plugin.emplace(*std::move(plugin));
  if (!loaded->plugin->registered().operator_factory) {
    ADD_FAILURE() << path << " registers no operator";
    return nullptr;
  }
  return loaded;
}

}  // namespace millrace::testing
