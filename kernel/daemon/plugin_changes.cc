#include "kernel/daemon/plugin_changes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include "kernel/config/document.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

constexpr std::string_view codecs = "compression";
constexpr std::string_view transports = "transport";

std::set<std::string> words(const char* text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

bool is_begun_while_running(const PlannedPlugin& plugin) {
  return plugin.request.kind == codecs || plugin.request.kind == transports;
}

}  // namespace

std::string name_of(const PlannedPlugin& plugin) {
  return concat(plugin.request.kind, "/", plugin.request.instance);
}

const PlannedPlugin* find_plugin(const std::vector<PlannedPlugin>& plugins,
                                 const PlannedPlugin& like) {
  const auto found = std::ranges::find_if(plugins, [&like](const PlannedPlugin& one) {
    return one.request.kind == like.request.kind && one.request.instance == like.request.instance;
  });
  return found == plugins.end() ? nullptr : &*found;
}

bool has_aggregates_alone(const PlannedPlugin& running, const PlannedPlugin& wanted) {
  return running.request.kind == "operators" &&
         std::string_view(running.library.descriptor->id) == wanted.library.descriptor->id &&
         *running.library.descriptor->provides == '\0' &&
         *wanted.library.descriptor->provides == '\0';
}

PluginChanges plugin_changes(const std::vector<PlannedPlugin>& running,
                             const std::vector<PlannedPlugin>& wanted,
                             const std::function<bool(const PlannedPlugin&)>& needs) {
  PluginChanges changes;
  std::set<std::string> provided;
  for (const auto& plugin : running) provided.merge(words(plugin.library.descriptor->provides));
  const auto tell = [&changes](const PlannedPlugin& plugin, std::string_view what) {
    changes.at_restart.push_back(concat("plugin ", name_of(plugin), " ", what));
  };
  for (const auto& plugin : wanted) {
    const auto& descriptor = *plugin.library.descriptor;
    const auto* before = find_plugin(running, plugin);
    if (before == nullptr) {
      const bool can = is_begun_while_running(plugin) &&
                       std::ranges::includes(provided, words(descriptor.needs));
      if (!can) {
        tell(plugin, "starts");
        continue;
      }
      provided.merge(words(descriptor.provides));
      changes.starts.push_back(plugin);
    } else if (before->request.plugin != plugin.request.plugin) {
      tell(plugin, concat("is ", plugin.request.plugin));
    } else if (before->library.descriptor != plugin.library.descriptor &&
               !has_aggregates_alone(*before, plugin)) {
      tell(plugin, "has another file");
    }
  }
  for (const auto& plugin : running) {
    if (find_plugin(wanted, plugin) != nullptr) continue;
    if (plugin.request.kind == transports && !needs(plugin)) {
      changes.ends.push_back(plugin.request.instance);
    } else {
      tell(plugin, "ends");
    }
  }
  return changes;
}

std::vector<std::string> reloaded_keys(const PluginChanges& changes) {
  std::vector<std::string> keys;
  for (const auto& plugin : changes.starts) {
    keys.push_back(concat(plugin.request.kind, ".", quoted_key(plugin.request.instance), "."));
  }
  for (const auto& instance : changes.ends) {
    keys.push_back(concat(transports, ".", quoted_key(instance), "."));
  }
  // Which codecs there are is as configured, unless one of them waits.
  const auto waits = [](const std::string& told) {
    return told.starts_with(concat("plugin ", codecs, "/"));
  };
  if (std::ranges::none_of(changes.at_restart, waits)) {
    keys.push_back(concat(codecs, ".plugins"));
  }
  return keys;
}

}  // namespace millrace::kernel
