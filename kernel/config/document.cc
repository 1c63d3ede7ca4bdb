#include "kernel/config/document.h"

#include <algorithm>
#include <utility>

#include "kernel/config/tomlplusplus.h"

namespace millrace::kernel {

namespace {

// stream.NAME.steps[0].OPTION has four.
constexpr std::size_t key_names_max = 16;

ConfigPlace place_of(const toml::source_region& region, const std::string& name) {
  return {name, region.begin.line, region.begin.column};
}

ConfigTable table_of(const toml::table& from, const std::string& name);

ConfigValue value_of(const toml::node& node, const std::string& name) {
  ConfigValue result{place_of(node.source(), name), ConfigDate{}};
  if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = integer->get();
  } else if (const auto* boolean = node.as_boolean()) {
    result.value = boolean->get();
  } else if (const auto* number = node.as_floating_point()) {
    result.value = number->get();
  } else if (const auto* list = node.as_array()) {
    ConfigValue::List values;
    for (const auto& element : *list) values.push_back(value_of(element, name));
    result.value = std::move(values);
  } else if (const auto* table = node.as_table()) {
    result.value = table_of(*table, name);
  }
  return result;
}

ConfigTable table_of(const toml::table& from, const std::string& name) {
  ConfigTable result;
  for (const auto& [key, node] : from) {
    result.put(std::string(key.str()),
               {place_of(key.source(), name), value_of(node, name), std::nullopt});
  }
  return result;
}

/// Where KEY=VALUE is to be cut: the first "=" outside quotes.
std::size_t find_equals(std::string_view text) {
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\' && quote == '"') {
        ++at;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '=') {
      return at;
    }
  }
  return std::string_view::npos;
}

/// Behind the string that begins at `at`, which is not ended where its line or the text is.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const std::string_view mark = text.substr(at, 1);
  const auto triple = text.substr(at, 3);
  const bool lines = triple == R"(""")" || triple == "'''";
  const auto end = lines ? triple : mark;
  for (at += end.size(); at < text.size(); ++at) {
    if (text.substr(at, end.size()) == end) return at + end.size();
    if (text[at] == '\n' && !lines) return at;
    if (text[at] == '\\' && mark == "\"") ++at;
  }
  return text.size();
}

/// Where a key has more names than any table is deep: the parser, and all who follow what it has
/// made, would go as deep as they are told, until the stack ends.
std::optional<std::size_t> find_deep_key(std::string_view text) {
  std::size_t dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++dots >= key_names_max) return at;
    if (std::string_view("\n=,[]{}").contains(c)) dots = 0;
    ++at;
  }
  return std::nullopt;
}

std::string too_deep() {
  return "this key has more than " + std::to_string(key_names_max) +
         " names; no table is that deep";
}

/// The names of a dotted key, outermost first; or what is wrong with it.
std::expected<std::vector<std::string>, std::string> read_key(std::string_view text) {
  if (text.find('\n') != std::string_view::npos) return std::unexpected("the key has a line break");
  if (find_deep_key(text)) return std::unexpected(too_deep());
  const auto document = toml::parse(std::string(text) + " = 0");
  if (!document) return std::unexpected(std::string(document.error().description()));
  std::vector<std::string> names;
  for (const toml::table* table = &document.table(); table != nullptr;) {
    if (table->size() != 1) return std::unexpected("there is no key");
    names.emplace_back(table->begin()->first.str());
    table = table->begin()->second.as_table();
  }
  return names;
}

ConfigValue read_value(const std::string& text, const ConfigPlace& place) {
  ConfigValue result{place, text};
  if (find_deep_key(text)) return result;
  const auto document = toml::parse("value = " + text);
  if (document && document.table().size() == 1) {
    result = value_of(*document.table().get("value"), place.source);
    result.place = place;
  }
  return result;
}

}  // namespace

const ConfigEntry* ConfigTable::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

const ConfigTable* ConfigTable::table(std::string_view key) const {
  const auto* entry = find(key);
  return entry == nullptr ? nullptr : std::get_if<ConfigTable>(&entry->value.value);
}

void ConfigTable::put(std::string key, ConfigEntry entry) {
  entries_.insert_or_assign(std::move(key), std::move(entry));
}

void ConfigTable::merge(ConfigTable later) {
  for (auto& [key, entry] : later.entries_) {
    const auto here = entries_.find(key);
    auto* ours =
        here == entries_.end() ? nullptr : std::get_if<ConfigTable>(&here->second.value.value);
    auto* theirs = std::get_if<ConfigTable>(&entry.value.value);
    if (ours != nullptr && theirs != nullptr) {
      ours->merge(std::move(*theirs));
    } else {
      put(key, std::move(entry));
    }
  }
}

OptionPlaces places_in(const ConfigTable& table) {
  OptionPlaces places;
  for (const auto& [key, entry] : table.entries()) places.emplace(key, entry.value.place);
  return places;
}

std::expected<ConfigTable, ConfigError> read_toml(std::string_view text, const std::string& name) {
  if (const auto deep = find_deep_key(text)) {
    const auto before = text.substr(0, *deep);
    const auto line_at = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto line = std::ranges::count(before, '\n') + 1;
    return std::unexpected(ConfigError{
        {name, static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(*deep - line_at + 1)},
        too_deep()});
  }
  const auto document = toml::parse(text, name);
  if (!document) {
    const auto& error = document.error();
    std::string message(error.description());
    if (message.find("redefine") != std::string::npos) {
      message += "; a key or table stands once in a file (a later file or --set may replace it)";
    }
    return std::unexpected(ConfigError{place_of(error.source(), name), std::move(message)});
  }
  return table_of(document.table(), name);
}

std::expected<ConfigTable, ConfigError> read_set(const std::string& set) {
  const auto equals = find_equals(set);
  if (equals == std::string::npos) {
    return std::unexpected(ConfigError{{.source = "--set " + set},
                                       "expected KEY=VALUE, such as broker.data=/srv/millrace"});
  }
  // The value stays out of what errors print: it may be a secret.
  const ConfigPlace place{.source = "--set " + set.substr(0, equals) + "=…"};
  const auto names = read_key(std::string_view(set).substr(0, equals));
  if (!names) {
    return std::unexpected(
        ConfigError{place, names.error() + "; keys are dotted and quoted as in TOML, such as "
                                           "broker.data or 'defaults.\"num.partitions\"'"});
  }
  auto written = set.substr(equals + 1);
  auto value = read_value(written, place);
  ConfigEntry entry{place, std::move(value), std::move(written)};
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    ConfigTable table;
    table.put(*name, std::move(entry));
    if (std::next(name) == names->rend()) return table;
    entry = {place, {place, std::move(table)}, std::nullopt};
  }
  std::unreachable();
}

std::string quoted_key(std::string_view key) {
  const bool bare = !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  if (bare) return std::string(key);
  return '"' + std::string(key) + '"';
}

}  // namespace millrace::kernel
