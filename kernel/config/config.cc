#include "kernel/config/config.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "kernel/config/document.h"
#include "kernel/config/kernel_options.h"
#include "kernel/config/option_value.h"
#include "kernel/config/stream_tables.h"

namespace millrace::kernel {

namespace {

namespace fs = std::filesystem;

/// What runs where no transport is named.
constexpr const char* default_transports[] = {"http", "kafka"};

ConfigTable with_default_transports() {
  ConfigTable transports;
  for (const auto* name : default_transports) transports.put(name, {{}, {{}, ConfigTable()}, {}});
  ConfigTable root;
  root.put(tables::transport, {{}, {{}, std::move(transports)}, {}});
  return root;
}

bool names_no_transport(const ConfigTable& root) {
  if (root.find(tables::transport) == nullptr) return true;
  const auto* transports = root.table(tables::transport);
  return transports != nullptr && transports->entries().empty();
}

std::unexpected<ConfigError> wrong_file(const std::string& path, std::string what) {
  return std::unexpected(ConfigError{{.source = path}, std::move(what)});
}

std::expected<ConfigTable, ConfigError> read_config_file(const std::string& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) return wrong_file(path, "this is a folder, expected a file");
  const auto cannot_read = [&path] {
    return wrong_file(path, std::string("cannot read this file: ") + std::strerror(errno));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot_read();
  std::string text;
  for (char piece[4096]; file.read(piece, sizeof(piece)) || file.gcount() > 0;) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
  }
  // Half of it would be another configuration.
  if (file.bad()) return cannot_read();
  return read_toml(text, path);
}

/// conf.d/*.toml beside the main file, by name. As of a shell's pattern, none that begins with a
/// dot: those are an editor's, for as long as it has the file open.
std::expected<std::vector<std::string>, ConfigError> conf_d(const std::string& main_file) {
  std::vector<std::string> paths;
  const auto folder = fs::path(main_file).parent_path() / "conf.d";
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto& path = entry->path();
    const bool hidden = path.filename().string().starts_with('.');
    if (path.extension() == ".toml" && !hidden) paths.push_back(path.string());
  }
  // Who may not look into it must not start without what stands there.
  if (error && error != std::errc::no_such_file_or_directory) {
    return wrong_file(folder.string(), "cannot look into this folder: " + error.message());
  }
  std::ranges::sort(paths);
  return paths;
}

/// What would keep its reader waiting, such as a pipe, is none of conf.d.
std::expected<ConfigTable, ConfigError> read_of_conf_d(const std::string& path) {
  std::error_code none;
  const auto status = fs::status(path, none);
  if (fs::is_other(status)) return wrong_file(path, "this is no regular file");
  return read_config_file(path);
}

/// The text or list under `key` of `table`, its default when it is not set; none when what is
/// written is wrong, which Config::check reports.
template <class T>
std::optional<T> peek(const ConfigTable* table, const MillraceOption* options,
                      std::string_view key) {
  const auto& option = *find_option(options, key);
  const auto* entry = table == nullptr ? nullptr : table->find(key);
  if (entry == nullptr) {
    const auto fallback = default_of(option);
    if (!fallback || !*fallback) return std::nullopt;
    return std::get<T>(**fallback);
  }
  auto value = value_of(option, *entry);
  if (!value) return std::nullopt;
  return std::get<T>(*std::move(value));
}

/// Where `key` of `table` is written, or the table itself, or nothing.
ConfigPlace place_of(const ConfigTable& root, std::string_view table, std::string_view key) {
  const auto* entry = root.find(table);
  if (entry == nullptr) return {};
  const auto* keys = root.table(table);
  const auto* inner = keys == nullptr ? nullptr : keys->find(key);
  return inner == nullptr ? entry->key : inner->value.place;
}

void add_single(std::vector<PluginRequest>& requests, const ConfigTable& root, const char* kind,
                const MillraceOption* options) {
  const auto plugin = peek<std::string>(root.table(kind), options, "plugin");
  if (!plugin) return;
  requests.push_back({kind, *plugin, *plugin, place_of(root, kind, "plugin")});
}

/// Of a kind of which any number runs: what `plugins` chooses, else all that were found.
void add_chosen(std::vector<PluginRequest>& requests, const ConfigTable& root, const char* kind,
                const MillraceOption* options, const std::vector<std::string>& found) {
  const auto chosen =
      peek<std::vector<std::string>>(root.table(kind), options, "plugins").value_or(found);
  for (const auto& name : chosen) {
    requests.push_back({kind, name, name, place_of(root, kind, "plugins")});
  }
}

void add_transports(std::vector<PluginRequest>& requests, const ConfigTable& root) {
  const auto* transports = root.table(tables::transport);
  if (transports == nullptr) return;
  for (const auto& [name, entry] : transports->entries()) {
    const auto* table = std::get_if<ConfigTable>(&entry.value.value);
    if (table == nullptr) continue;
    if (table->find("plugin") == nullptr) {
      requests.push_back({tables::transport, name, name, entry.key});
    } else if (const auto plugin = peek<std::string>(table, transport_options(), "plugin")) {
      requests.push_back({tables::transport, name, *plugin, table->find("plugin")->value.place});
    }
  }
}

}  // namespace

std::string to_string(const ConfigPlace& place) {
  if (place.source.empty() || place.line == 0) return place.source;
  return place.source + ':' + std::to_string(place.line) + ':' + std::to_string(place.column);
}

std::string to_string(const ConfigError& error) {
  if (error.place.source.empty()) return error.message;
  return to_string(error.place) + ": " + error.message;
}

ConfigPlace place_of_reason(std::string_view reason, const OptionPlaces& places,
                            const ConfigPlace& otherwise) {
  for (const auto& [name, place] : places) {
    if (!reason.starts_with(name)) continue;
    const auto rest = reason.substr(name.size());
    if (rest.starts_with(':') || rest.starts_with(" = ")) return place;
  }
  return otherwise;
}

void sort_by_place(ConfigErrors& errors) {
  std::ranges::sort(errors, {}, [](const ConfigError& error) {
    const auto& [source, line, column] = error.place;
    return std::tie(source, line, column, error.message);
  });
}

Error to_error(const ConfigErrors& errors) {
  std::string lines;
  for (const auto& error : errors) {
    if (!lines.empty()) lines += '\n';
    lines += to_string(error);
  }
  return {Errc::invalid_argument, std::move(lines)};
}

std::expected<Config, ConfigErrors> Config::load(const ConfigSource& source) {
  ConfigErrors errors;
  ConfigTable root;
  const auto add = [&](std::expected<ConfigTable, ConfigError> read) {
    if (read) {
      root.merge(*std::move(read));
    } else {
      errors.push_back(std::move(read).error());
    }
  };
  if (source.path.empty()) {
    add(with_default_transports());
  } else {
    add(read_config_file(source.path));
    if (auto paths = conf_d(source.path)) {
      for (const auto& path : *paths) add(read_of_conf_d(path));
    } else {
      errors.push_back(std::move(paths).error());
    }
  }
  for (const auto& set : source.sets) add(read_set(set));
  if (!errors.empty()) return std::unexpected(std::move(errors));
  if (names_no_transport(root)) root.merge(with_default_transports());
  return Config(std::make_shared<const ConfigTable>(std::move(root)));
}

std::vector<std::string> Config::plugin_folders() const {
  return peek<std::vector<std::string>>(root_->table(tables::plugins), plugins_options(), "path")
      .value_or(std::vector<std::string>{});
}

bool Config::chooses_operators() const {
  const auto* table = root_->table(tables::operators);
  return table != nullptr && table->find("plugins") != nullptr;
}

std::vector<PluginRequest> Config::plugins(const std::vector<std::string>& codecs,
                                           const std::vector<std::string>& services) const {
  std::vector<PluginRequest> requests;
  add_chosen(requests, *root_, tables::compression, compression_options(), codecs);
  add_single(requests, *root_, tables::coordination, coordination_options());
  add_single(requests, *root_, tables::storage, storage_options());
  add_chosen(requests, *root_, tables::operators, operators_options(), services);
  add_transports(requests, *root_);
  return requests;
}

std::vector<StepRequest> Config::stream_steps() const {
  const auto* streams = root_->table(tables::stream);
  return streams == nullptr ? std::vector<StepRequest>() : requested_steps(*streams);
}

}  // namespace millrace::kernel
