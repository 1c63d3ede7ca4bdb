#include "kernel/cli/plugin_list.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string_view>

#include <boost/json.hpp>

#include "kernel/cli/admin_client.h"
#include "kernel/config/text.h"
#include "kernel/host/plugin_files.h"
#include "kernel/host/trial.h"

namespace millrace::kernel::cli {

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

struct Listed {
  std::string kind;
  std::string name;
  std::string id;
  std::string version;
  std::string abi;
  std::string path;
  std::string package;  ///< "": of none
  std::string reason;   ///< why it is refused
  std::vector<PluginUse> uses;
};

std::string text_in(const std::string& path) {
  std::error_code not_there;
  const auto bytes = fs::file_size(path, not_there);
  std::string text(not_there ? 0 : bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

/// The names under which a package may list a file: /lib is /usr/lib by now.
std::vector<std::string> names_of(const std::string& file) {
  constexpr std::string_view usr = "/usr";
  std::vector<std::string> names{file};
  std::error_code not_there;
  if (const auto whole = fs::canonical(file, not_there); !not_there)
    names.push_back(whole.string());
  for (std::size_t at = 0, known = names.size(); at < known; ++at) {
    if (names[at].starts_with("/usr/")) names.push_back(names[at].substr(usr.size()));
  }
  return names;
}

std::string canonical(const std::string& path) {
  std::error_code not_there;
  const auto whole = fs::canonical(path, not_there);
  return not_there ? path : whole.string();
}

std::vector<Listed> find_all(const Context& context) {
  const PluginFiles files(context.plugin_folders);
  std::vector<Listed> all;
  for (const auto kind : plugin_kinds) {
    for (const auto& name : files.names(kind)) {
      const auto path = files.find(kind, name);
      if (!path) continue;  // it has gone meanwhile
      auto& one = all.emplace_back(
          Listed{.kind = std::string(kind), .name = name, .path = canonical(*path)});
      const auto library = load_tried(*path, kind, context.trial);
      if (!library) {
        one.reason = library.error().detail;
        continue;
      }
      const auto& descriptor = *library->descriptor;
      one.id = descriptor.id;
      one.version = descriptor.version;
      one.abi = concat(descriptor.abi_major, ".", descriptor.abi_minor);
    }
  }
  return all;
}

void add_packages(std::vector<Listed>& all) {
  std::vector<std::string> paths;
  for (const auto& one : all) paths.push_back(one.path);
  const auto packages = packages_of(paths);
  for (auto& one : all) one.package = packages.find(one.path)->second;
}

/// What it uses from elsewhere, such as a folder of its own configuration, is listed too.
void add_uses(std::vector<Listed>& all, const std::vector<PluginUse>& uses) {
  for (const auto& use : uses) {
    const auto path = canonical(use.path);
    auto found = std::ranges::find(all, path, &Listed::path);
    if (found == all.end()) {
      all.push_back({.kind = use.kind,
                     .name = fs::path(path).stem().string(),
                     .id = use.id,
                     .version = use.version,
                     .path = path});
      found = std::prev(all.end());
    }
    found->uses.push_back(use);
  }
}

std::string text_of(const std::vector<PluginUse>& uses) {
  std::vector<std::string> tables;
  for (const auto& use : uses) {
    auto table = concat("[", use.table, "]");
    if (!contains(tables, table)) tables.push_back(std::move(table));
  }
  return tables.empty() ? "no" : joined(tables);
}

std::string since_of(const std::vector<PluginUse>& uses) {
  for (const auto& use : uses) {
    if (!use.since.empty()) return use.since;
  }
  return {};
}

json::value json_of(const Listed& one, bool asked) {
  json::object object{{"plugin", concat(one.kind, "/", one.name)},
                      {"kind", one.kind},
                      {"id", one.id},
                      {"version", one.version},
                      {"abi", one.abi},
                      {"state", one.reason.empty() ? "ok" : "refused"},
                      {"path", one.path},
                      {"package", nullptr},
                      {"uses", nullptr}};
  if (!one.package.empty()) object["package"] = one.package;
  if (!one.reason.empty()) object["reason"] = one.reason;
  if (!asked) return object;
  json::array uses;
  for (const auto& use : one.uses) {
    json::object shown{{"table", use.table}, {"version", use.version}, {"since", nullptr}};
    if (!use.since.empty()) shown["since"] = use.since;
    uses.emplace_back(std::move(shown));
  }
  object["uses"] = std::move(uses);
  return object;
}

void print_table(const std::vector<Listed>& all, bool asked) {
  Table table({"PLUGIN", "ID", "VERSION", "ABI", "STATE", "USED BY", "SINCE", "FROM", "FILE"});
  for (const auto& one : all) {
    table.add({concat(one.kind, "/", one.name), one.id, one.version, one.abi,
               one.reason.empty() ? "ok" : "refused", asked ? text_of(one.uses) : "?",
               since_of(one.uses), one.package.empty() ? "own build" : one.package, one.path});
  }
  table.print();
  for (const auto& one : all) {
    if (!one.reason.empty()) std::cout << "\nrefused: " << one.reason << '\n';
  }
}

Task<> ask_for_plugins(Network& network, std::string admin, json::object& answer) {
  auto asking = ask_admin(network, std::move(admin), "GET", "/admin/plugins");
  MR_CO_TRY(answer, co_await std::move(asking));
  co_return {};
}

Result<json::object> ask(const std::string& admin) {
  json::object answer;
  MR_CHECK(run([&admin, &answer](Environment& environment) {
    return ask_for_plugins(environment.network(), admin, answer);
  }));
  return answer;
}

std::string member(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

std::map<std::string, std::string> packages_of(const std::vector<std::string>& files,
                                               const std::string& lists) {
  std::map<std::string, std::string> packages;
  std::map<std::string, std::string> file_of;  // by the line that names it
  for (const auto& file : files) {
    packages.emplace(file, "");
    for (auto& name : names_of(file)) file_of.emplace(concat("\n", name, "\n"), file);
  }
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(lists, none)) {
    if (entry.path().extension() != ".list") continue;
    const auto text = concat("\n", text_in(entry.path().string()));
    if (!text.contains("/millrace/")) continue;  // where plugins are
    auto package = entry.path().stem().string();
    package.resize(std::min(package.find(':'), package.size()));  // NAME:ARCHITECTURE
    for (const auto& [line, file] : file_of) {
      if (text.contains(line)) packages[file] = package;
    }
  }
  return packages;
}

std::vector<PluginUse> uses_of(const json::object& answer) {
  std::vector<PluginUse> uses;
  const auto add = [&](std::string_view list, std::string_view kind) {
    const auto* all = answer.if_contains(list);
    if (all == nullptr || !all->is_array()) return;
    for (const auto& element : all->get_array()) {
      if (!element.is_object()) continue;
      const auto& one = element.get_object();
      uses.push_back({.kind = kind.empty() ? member(one, "kind") : std::string(kind),
                      .id = member(one, "id"),
                      .version = member(one, "version"),
                      .path = member(one, "path"),
                      .table = member(one, "table"),
                      .since = member(one, "since")});
    }
  };
  add("plugins", "");
  add("steps", "operators");
  // A stream whose operators were not found has none.
  std::erase_if(uses, [](const PluginUse& use) { return use.path.empty(); });
  return uses;
}

Result<> list_plugins(const Context& context, const std::string& admin) {
  auto all = find_all(context);
  const auto answer = ask(admin);
  if (answer) add_uses(all, uses_of(*answer));
  add_packages(all);
  if (context.output == OutputFormat::json) {
    json::array plugins;
    for (const auto& one : all) plugins.emplace_back(json_of(one, answer.has_value()));
    json::object document{{"plugins", std::move(plugins)}, {"broker", nullptr}};
    if (answer) document["broker"] = admin;
    print_json(document);
    return {};
  }
  print_table(all, answer.has_value());
  if (!answer) {
    std::cout << "\nUSED BY is not known: no broker at " << admin << " tells (--admin names "
              << "another): " << answer.error().detail << '\n';
  }
  return {};
}

}  // namespace millrace::kernel::cli
