// A plugin's side of the conversation: the class it implements, what it is handed, how it registers
// what it offers, and the macro that makes the descriptor.
//
// Growing: what plugins implement (Plugin and the kinds' classes) is frozen within an ABI major;
// new abilities arrive as a class found by id through Plugin::extension(). What the kernel
// implements (Host, Registrar) may grow at the end with a new minor.
#pragma once

#include <memory>
#include <new>
#include <string_view>

#include <millrace/abi.h>
#include <millrace/buffer.h>
#include <millrace/codec.h>
#include <millrace/observe.h>
#include <millrace/options.h>
#include <millrace/result.h>

namespace millrace {

class AggregateFactory;
class Codec;
class Coordination;
class Environment;
class OperatorFactory;
class Storage;
class Transport;

/// What one instance of a plugin gets from the kernel; outlives the instance.  [any thread]
class Host {
 public:
  virtual ~Host() = default;
  /// The instance's name: the NAME of `[transport.NAME]`, or the plugin's own.
  virtual std::string_view instance() const noexcept = 0;
  /// Checked against what the descriptor declares, defaults filled in.
  virtual const Options& options() const noexcept = 0;
  virtual Environment& environment() noexcept = 0;
  /// Lines carry the plugin's id as subsystem.
  virtual const Log& log() const noexcept = 0;
  virtual Metrics& metrics() noexcept = 0;
  /// Settings of the broker that several kinds need: "broker.id", "broker.data".
  virtual std::string_view setting(std::string_view name) const noexcept = 0;
};

/// Takes what a plugin offers; the kernel owns it from then on and destroys it before the plugin.
/// One object per kind and instance; of codecs and aggregates any number.  [start-up]
class Registrar {
 public:
  virtual ~Registrar() = default;
  virtual Result<> add(std::unique_ptr<Codec> codec) = 0;
  virtual Result<> add(std::unique_ptr<Storage> storage) = 0;
  virtual Result<> add(std::unique_ptr<Coordination> coordination) = 0;
  virtual Result<> add(std::unique_ptr<Transport> transport) = 0;
  virtual Result<> add(std::unique_ptr<AggregateFactory> aggregate) = 0;
  virtual Result<> add(std::unique_ptr<OperatorFactory> factory) = 0;
};

/// One instance of a shared object. Created, started once, destroyed after everything it
/// registered.  [start-up]
class Plugin {
 public:
  virtual ~Plugin() = default;
  /// An error ends the broker's start with this plugin's id and the reason.
  virtual Result<> start(Registrar& registrar, Host& host) = 0;
  /// An ability added within the major, by id ("millrace.storage.tiering/1"); nullptr when unknown.
  virtual void* extension(std::string_view /*id*/) noexcept { return nullptr; }
};

/// Goes up when what a plugin of one kind must implement changes; the other kinds' plugins still
/// load.
constexpr std::uint16_t revision_of_kind(std::string_view kind) {
  return kind == "storage" ? 3 : 1;
}

namespace detail {
template <class P>
Plugin* create_plugin() noexcept {
  try {
    return new (std::nothrow) P;
  } catch (...) {
    return nullptr;
  }
}
inline void destroy_plugin(Plugin* plugin) noexcept { delete plugin; }

template <class T>
consteval MillraceLayout layout_of(const char* type) {
  return {type, sizeof(T), alignof(T)};
}

/// Types that every plugin shares with the kernel. In the header, so that each side measures with
/// its own compiler.
inline constexpr MillraceLayout shared_layout[] = {
    layout_of<Error>("Error"),
    layout_of<Result<>>("Result<>"),
    layout_of<Result<Buffer>>("Result<Buffer>"),
    layout_of<Buffer>("Buffer"),
    layout_of<Block>("Block"),
    layout_of<Options>("Options"),
    layout_of<OptionValue>("OptionValue"),
    layout_of<Log>("Log"),
    layout_of<LogField>("LogField"),
    layout_of<Counter>("Counter"),
    layout_of<Gauge>("Gauge"),
    {nullptr, 0, 0},
};
inline constexpr MillraceOption no_options[] = {
    {nullptr, 0, nullptr, nullptr, 0, 0, nullptr, nullptr, 0}};

/// A text in place: what is read from a file before it is mapped has no pointers yet.
struct ToolchainText {
  char text[128] = {};
  consteval explicit ToolchainText(std::string_view from) { from.copy(text, sizeof text - 1); }
};
}  // namespace detail

/// What MILLRACE_PLUGIN takes, by designated initialisers.
struct PluginFacts {
  const char* kind;
  const char* id;
  const char* version;
  const char* summary = "";
  const char* licence = "Apache-2.0";
  const MillraceOption* options = detail::no_options;
  const char* needs = "";
  const char* provides = "";
  /// The system kinds' table is in system_plugin.h, which adds theirs.
  const MillraceLayout* layout = detail::shared_layout;
  const char* toolchain = MILLRACE_TOOLCHAIN_PORTABLE;
};

}  // namespace millrace

/// The whole registration of a plugin, once per shared object:
///   MILLRACE_PLUGIN(GzipPlugin, .kind = "compression", .id = "org.millrace.compression.gzip",
///                   .version = "0.1.0", .summary = "gzip by zlib");
/// Expands to the descriptor, and to the toolchain's text in a section of its own. Globals of a
/// plugin are constinit: static constructors would run before the kernel has compared the layouts.
#define MILLRACE_PLUGIN(PluginClass, ...)                                                  \
  static_assert(::std::is_base_of_v<::millrace::Plugin, PluginClass>);                     \
  static constexpr ::millrace::PluginFacts millrace_plugin_facts{__VA_ARGS__};             \
  __attribute__((                                                                          \
      section(MILLRACE_TOOLCHAIN_SECTION),                                                 \
      used)) static constexpr ::millrace::detail::ToolchainText millrace_plugin_toolchain{ \
      millrace_plugin_facts.toolchain};                                                    \
  extern "C" __attribute__((                                                               \
      visibility("default"))) constinit const MillraceDescriptor millrace_plugin_v1 = {    \
      MILLRACE_MAGIC,                                                                      \
      sizeof(MillraceDescriptor),                                                          \
      MILLRACE_ABI_MAJOR,                                                                  \
      MILLRACE_ABI_MINOR,                                                                  \
      ::millrace::revision_of_kind(millrace_plugin_facts.kind),                            \
      0,                                                                                   \
      millrace_plugin_facts.kind,                                                          \
      millrace_plugin_facts.id,                                                            \
      millrace_plugin_facts.version,                                                       \
      millrace_plugin_facts.licence,                                                       \
      millrace_plugin_facts.summary,                                                       \
      millrace_plugin_facts.needs,                                                         \
      millrace_plugin_facts.provides,                                                      \
      millrace_plugin_facts.toolchain,                                                     \
      millrace_plugin_facts.layout,                                                        \
      millrace_plugin_facts.options,                                                       \
      &::millrace::detail::create_plugin<PluginClass>,                                     \
      &::millrace::detail::destroy_plugin}
