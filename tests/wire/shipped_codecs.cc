#include "shipped_codecs.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::wire {

namespace {

struct Loaded {
  testing::SimWorld world{1};
  std::vector<testing::LoadedPlugin> plugins;
  Codecs codecs;
};

std::unique_ptr<Loaded> load_all() {
  auto loaded = std::make_unique<Loaded>();
  auto& node = loaded->world.add_node("tool");
  for (const std::string name : {"gzip", "snappy", "lz4", "zstd"}) {
    const auto path = program_folder() + "/../lib/millrace/plugins/compression/" + name + ".so";
    auto plugin = testing::load_plugin(path, node);
    if (!plugin || plugin->registered().codecs.empty()) {
      std::fprintf(
          stderr, "%s\n",
          plugin ? (path + ": registers no codec").c_str() : to_string(plugin.error()).c_str());
      std::exit(1);
    }
    loaded->codecs.add(*plugin->registered().codecs.front());
    loaded->plugins.push_back(*std::move(plugin));
  }
  return loaded;
}

}  // namespace

const Codecs& shipped_codecs() {
  static const auto loaded = load_all();
  return loaded->codecs;
}

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

}  // namespace millrace::wire
