// Every key of every table against what kernel and plugins declare.
#include <algorithm>

#include "kernel/config/config.h"
#include "kernel/config/document.h"
#include "kernel/config/kernel_options.h"
#include "kernel/config/option_value.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

/// An unknown key lists all that are known up to this many; beyond, the nearest alone.
constexpr std::size_t known_listed_max = 16;

class Checker {
 public:
  Checker(const ConfigTable& root, const std::vector<DeclaredPlugin>& plugins)
      : root_(root), plugins_(plugins) {}

  ConfigErrors& errors() noexcept { return errors_; }

  void check_tables();
  void check_plugin_names();
  void check_compression();
  BrokerSettings broker();
  LogSettings log();
  std::map<std::string, std::string> defaults(const MillraceOption* declared);
  std::vector<Settings::Instance> instances();

 private:
  using Values = std::map<std::string, OptionValue, std::less<>>;

  void fail(const ConfigPlace& place, std::string message) {
    errors_.push_back({place, std::move(message)});
  }
  /// The table `name` of the root; an empty one when it is absent or, which is reported, not a
  /// table.
  const ConfigTable& top(const char* name);
  void unknown(const ConfigEntry& entry, const std::string& table, const std::string& key,
               std::vector<std::string> known);
  void value(Values& values, const std::string& path, const MillraceOption& option,
             const ConfigEntry& entry);
  /// Values and defaults of everything `declared`. Keys that are neither declared nor `others` are
  /// unknown.
  Values read(const ConfigTable& table, const std::string& name, const MillraceOption* declared,
              const std::vector<std::string>& others, const ConfigPlace& place);
  void check_plugin_name(const std::string& path, const char* kind, const std::string& name,
                         const ConfigPlace& place);
  void check_plugin_key(const std::string& table_name, const char* kind, const ConfigTable& table,
                        const MillraceOption* options);
  void check_transport(const std::string& name, const ConfigEntry& entry);
  const ConfigTable& table_of(const PluginRequest& request);
  void unquoted_default(const std::string& path, const ConfigTable& table,
                        const MillraceOption* declared);

  const ConfigTable& root_;
  const std::vector<DeclaredPlugin>& plugins_;
  ConfigTable empty_;
  ConfigErrors errors_;
};

const ConfigTable& Checker::top(const char* name) {
  const auto* table = root_.table(name);
  return table == nullptr ? empty_ : *table;
}

void Checker::unknown(const ConfigEntry& entry, const std::string& table, const std::string& key,
                      std::vector<std::string> known) {
  sort_by_place(checker.errors());
  return std::unexpected(std::move(checker.errors()));
}

}  // namespace millrace::kernel
