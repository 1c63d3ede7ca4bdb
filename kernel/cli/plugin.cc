// millrace plugin list|show|check|new: works on files; `list` asks a broker what it uses of them.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/utf8.h>

#include "kernel/cli/context.h"
#include "kernel/cli/output.h"
#include "kernel/cli/plugin_list.h"
#include "kernel/cli/plugin_new.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"
#include "kernel/host/library.h"
#include "kernel/host/plugin_files.h"
#include "kernel/host/trial.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

// Where somebody has left ".so" away, or the kind.
Error not_found(const std::string& plugin, const PluginFiles& files) {
  std::error_code none;
  if (std::filesystem::exists(plugin + ".so", none)) {
    return {Errc::not_found, plugin + ": there is no such file; " + plugin + ".so is there"};
  }
  if (std::filesystem::exists(plugin, none)) {
    const bool is_folder = std::filesystem::is_directory(plugin, none);
    return {Errc::invalid_argument, plugin + (is_folder ? " is a folder" : " is no regular file") +
                                        "; expected KIND/NAME as millrace plugin list shows it, or "
                                        "a file"};
  }
  for (const auto kind : plugin_kinds) {
    const auto path = files.find(kind, plugin);
    if (!path) continue;
    return {Errc::invalid_argument, "expected KIND/NAME, or a file; there is " + std::string(kind) +
                                        '/' + plugin + ", " + *path};
  }
  return {Errc::not_found,
          "expected KIND/NAME as millrace plugin list shows it, or a file; there "
          "is neither " +
              plugin + " nor " + plugin + ".so"};
}

Result<> check_folders(const Context& context) {
  for (const auto& folder : context.plugin_folders) {
    std::error_code none;
    if (std::filesystem::is_directory(folder, none)) continue;
    return Error{Errc::invalid_argument, "--path: there is no folder " + in_quotes(folder) +
                                             "; expected one with KIND/NAME.so in it"};
  }
  return {};
}

// KIND/NAME as `plugin list` prints it, or the path of a file.
Result<std::string> path_of(const Context& context, const std::string& plugin) {
  const PluginFiles files(context.plugin_folders);
  std::error_code none;
  if (plugin.ends_with(".so") || std::filesystem::is_regular_file(plugin, none)) return plugin;
  const auto slash = plugin.find('/');
  const auto kind = kind_meant(plugin.substr(0, slash));
  if (slash == std::string::npos ||
      std::ranges::find(plugin_kinds, kind) == std::ranges::end(plugin_kinds)) {
    return not_found(plugin, files);
  }
  return files.find(kind, plugin.substr(slash + 1));
}

const char* type_of(const MillraceOption& option) {
  switch (option.type) {
    case MILLRACE_OPTION_INTEGER: return "integer";
    case MILLRACE_OPTION_BOOLEAN: return "boolean";
    case MILLRACE_OPTION_NUMBER: return "number";
    case MILLRACE_OPTION_TEXTS: return "texts";
    default: return "text";
  }
}

const char* or_empty(const char* text) { return text ? text : ""; }

Result<> show(const Context& context, const std::string& plugin) {
  MR_TRY(const auto path, path_of(context, plugin));
  MR_TRY(const auto library, load_tried(path, {}, context.trial));
  const auto& facts = *library.descriptor;
  if (context.output == OutputFormat::json) {
    json::array options;
    for (const auto* option = facts.options; option->name; ++option) {
      options.emplace_back(json::object{{"name", option->name},
                                        {"type", type_of(*option)},
                                        {"unit", or_empty(option->unit)},
                                        {"default", or_empty(option->default_value)},
                                        {"help", or_empty(option->help)}});
    }
    print_json(json::object{
        {"id", facts.id},
        {"kind", facts.kind},
        {"version", facts.version},
        {"licence", facts.licence},
        {"summary", facts.summary},
        {"abi", std::to_string(facts.abi_major) + "." + std::to_string(facts.abi_minor)},
        {"toolchain", facts.toolchain},
        {"path", path},
        {"options", std::move(options)}});
    return {};
  }
  std::cout << facts.id << ' ' << facts.version << " (" << facts.kind << ", " << facts.licence
            << ")\n"
            << facts.summary << "\n\nfile       " << path << "\nabi        " << facts.abi_major
            << '.' << facts.abi_minor << "\ntoolchain  " << facts.toolchain << "\n\n";
  Table table({"OPTION", "TYPE", "UNIT", "DEFAULT", "MEANING"});
  for (const auto* option = facts.options; option->name; ++option) {
    table.add({option->name, type_of(*option), or_empty(option->unit),
               or_empty(option->default_value), or_empty(option->help)});
  }
  table.print();
  return {};
}

Result<> check(const Context& context, const std::string& plugin) {
  MR_TRY(const auto path, path_of(context, plugin));
  MR_TRY(const auto library, load_tried(path, {}, context.trial));
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"path", path}, {"id", library.descriptor->id}, {"state", "ok"}});
  } else {
    std::cout << path << ": " << library.descriptor->id << " fits this kernel\n";
  }
  return {};
}

Result<> make_new(const Context& context, NewPlugin wanted) {
  wanted.kind = kind_meant(wanted.kind);
  MR_TRY(const auto folder, make_plugin_folder(wanted));
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"folder", folder}, {"kind", wanted.kind}, {"name", wanted.name}});
    return {};
  }
  const auto build = folder + (folder.ends_with('/') ? "build" : "/build");
  const auto plugins = build + "/plugins";
  const auto made = plugins + '/' + wanted.kind + '/' + wanted.name + ".so";
  const auto prefix = for_shell(installed_prefix());
  const auto path = std::filesystem::absolute(plugins).string();
  std::cout << "made " << shown(folder, folder.size()) << "\n\n"
            << "  cmake -G Ninja -S " << for_shell(folder) << " -B " << for_shell(build)
            << " -DCMAKE_BUILD_TYPE=Release \\\n"
            << "        -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_PREFIX_PATH=" << prefix << "\n"
            << "  cmake --build " << for_shell(build) << "\n"
            << "  ctest --test-dir " << for_shell(build) << "\n"
            << "  millrace plugin check " << for_shell(made) << "\n\n"
            << "All of it by one command, and a .deb to install with apt:\n\n"
            << "  (cd " << for_shell(folder) << " && CXX=clang++-19 CMAKE_PREFIX_PATH=" << prefix
            << " cmake --workflow --preset package)\n\n"
            << "millraced finds it where plugins.path has " << shown(path, path.size())
            << ".\nThe plugin's id begins with org.example: put a name that you own in its "
               "place.\n";
  return {};
}

}  // namespace

void add_plugin_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("plugin", "list, show, check and begin plugins");
  verb->require_subcommand(1);
  verb->add_option("--path", context.plugin_folders, "more folders to look in")
      ->type_name("FOLDER")
      ->allow_extra_args(false);
  auto* list_verb = verb->add_subcommand(
      "list", "list the plugins that are found, from which package, and what a broker uses");
  add_examples(*list_verb, {"millrace plugin list", "millrace plugin --path build/plugins list"});
  const auto admin = std::make_shared<std::string>("127.0.0.1:9644");
  list_verb
      ->add_option("--admin", *admin,
                   "the broker whose use of them is shown: where its transport http listens")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  list_verb->callback([&context, &action, admin] {
    action = [&context, admin]() -> Result<> {
      MR_CHECK(check_folders(context));
      return list_plugins(context, *admin);
    };
  });
  const auto add_named = [&](const char* name, const char* help, auto run_it) {
    auto* named = verb->add_subcommand(name, help);
    const auto plugin = std::make_shared<std::string>();
    named->add_option("PLUGIN", *plugin, "KIND/NAME, or a file")->required();
    add_examples(*named, {concat("millrace plugin ", name, " storage/filelog"),
                          concat("millrace plugin ", name, " build/plugins/operators/words.so")});
    named->callback([&context, &action, plugin, run_it] {
      action = [&context, plugin, run_it]() -> Result<> {
        MR_CHECK(check_folders(context));
        return run_it(context, *plugin);
      };
    });
  };
  add_named("show", "show a plugin's facts and options", &show);
  add_named("check", "tell whether this kernel would load a plugin, and why not", &check);

  auto* fresh = verb->add_subcommand("new", "make the folder of a new plugin");
  const auto wanted = std::make_shared<NewPlugin>();
  fresh->add_option("NAME", wanted->name, "its name, such as word_count")->required();
  fresh->add_option("--kind", wanted->kind, "operators, or compression")
      ->required()
      ->check(not_empty);
  fresh->add_option("--into", wanted->into, "the folder to make; NAME unless given")
      ->type_name("FOLDER")
      ->check(not_empty);
  fresh->add_option("--templates", wanted->templates, "where the templates are")
      ->type_name("FOLDER")
      ->check(not_empty);
  add_examples(*fresh, {"millrace plugin new word_count --kind operators"});
  fresh->callback([&context, &action, wanted] {
    action = [&context, wanted] { return make_new(context, *wanted); };
  });
}

}  // namespace millrace::kernel::cli
