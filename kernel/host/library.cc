#include "kernel/host/library.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <millrace/system_plugin.h>

#include "kernel/config/text.h"
#include "kernel/host/elf_file.h"
#include "kernel/host/plugin_files.h"

namespace millrace::kernel {

namespace {

constexpr std::string_view symbol_prefix = "millrace_plugin_v";

Error refused(const std::string& path, std::string reason) {
  return {Errc::incompatible, path + ": " + std::move(reason)};
}

std::string hex(std::uint32_t value) {
  char text[16];
  return {text, std::to_chars(std::begin(text), std::end(text), value, 16).ptr};
}

/// Kinds whose objects share coroutine frames with the kernel.
bool is_system_kind(std::string_view kind) {
  return kind == "storage" || kind == "coordination" || kind == "transport";
}

Error no_descriptor(const std::string& path, const std::vector<std::string>& symbols) {
  for (const auto& symbol : symbols) {
    if (!symbol.starts_with(symbol_prefix)) continue;
    const auto major = symbol.substr(symbol_prefix.size());
    return refused(path, concat("built for plugin ABI ", major, ", this kernel loads ABI ",
                                MILLRACE_ABI_MAJOR, "; rebuild it against SDK ", MILLRACE_ABI_MAJOR,
                                ".x or run a Millrace that loads ABI ", major));
  }
  return refused(path,
                 "exports no millrace_plugin_v* symbol; not a Millrace plugin (a plugin ends with "
                 "MILLRACE_PLUGIN(...) and is built with millrace_add_plugin())");
}

/// A file as it is at one moment.
struct FileStamp {
  dev_t device = 0;
  ino_t number = 0;
  off_t bytes = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return std::nullopt;
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  return FileStamp{file.st_dev, file.st_ino, file.st_size,
                   file.st_mtim.tv_sec * ns_per_s + file.st_mtim.tv_nsec};
}

/// The same for the same bytes, within this process.
std::size_t content_hash(const std::string& path) {
  std::error_code not_there;
  const auto bytes = std::filesystem::file_size(path, not_there);
  std::string content(not_there ? 0 : bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  return std::hash<std::string_view>()(content);
}

struct MappedFile {
  boost::dll::shared_library library;
  std::optional<FileStamp> stamp;
  std::size_t content = 0;
};

/// Libraries by canonical path. Never destroyed, as they are never unmapped.
struct Mapped {
  std::mutex mutex;
  std::map<std::string, MappedFile> by_path;
};
Mapped& mapped() {
  static auto& all = *new Mapped;
  return all;
}

std::atomic<const char*> being_mapped = nullptr;

/// One at a time: under the mutex of what is mapped.
class BeingMapped {
 public:
  explicit BeingMapped(const std::string& path) { being_mapped = path.c_str(); }
  ~BeingMapped() { being_mapped = nullptr; }
  BeingMapped(const BeingMapped&) = delete;
  BeingMapped& operator=(const BeingMapped&) = delete;
};

Result<boost::dll::shared_library> map_library(const std::string& path) {
  namespace dll = boost::dll;
  std::error_code not_resolved;
  auto key = std::filesystem::canonical(path, not_resolved).string();
  if (not_resolved) return Error{Errc::io, path + ": " + not_resolved.message()};
  auto& all = mapped();
  const std::scoped_lock lock(all.mutex);
  if (const auto found = all.by_path.find(key); found != all.by_path.end()) {
    return found->second.library;
  }
  try {
    MappedFile file{{}, stamp_of(key), content_hash(key)};
    const BeingMapped now(path);
    file.library = dll::shared_library(key, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
    return all.by_path.emplace(std::move(key), std::move(file)).first->second.library;
  } catch (const std::exception& failed) {
    return refused(path, concat("the system's loader refuses it: ", failed.what(),
                                "; build it against this SDK and link every library it uses"));
  }
}

// What may be read before the layout of the descriptor is trusted: magic and size come first.
Result<> check_shape(const MillraceDescriptor& descriptor, const std::string& path) {
  if (descriptor.magic != MILLRACE_MAGIC) {
    return refused(
        path, concat("descriptor starts with 0x", hex(descriptor.magic), ", expected 0x",
                     hex(MILLRACE_MAGIC), " (MILLRACE_MAGIC); make it with MILLRACE_PLUGIN(...)"));
  }
  if (descriptor.descriptor_size != sizeof(MillraceDescriptor)) {
    return refused(path,
                   concat("descriptor is ", descriptor.descriptor_size, " bytes in the plugin, ",
                          sizeof(MillraceDescriptor), " in the kernel; rebuild it against SDK ",
                          MILLRACE_ABI_MAJOR, ".x"));
  }
  if (descriptor.abi_major != MILLRACE_ABI_MAJOR || descriptor.abi_minor > MILLRACE_ABI_MINOR) {
    return refused(
        path, concat("built for plugin ABI ", descriptor.abi_major, ".", descriptor.abi_minor,
                     ", this kernel loads ", MILLRACE_ABI_MAJOR, ".0 to ", MILLRACE_ABI_MAJOR, ".",
                     MILLRACE_ABI_MINOR, "; rebuild it against this SDK or run a newer Millrace"));
  }
  return {};
}

Result<> check_fields(const MillraceDescriptor& descriptor, const std::string& path) {
  const struct {
    const char* name;
    bool present;
  } fields[] = {
      {"kind", descriptor.kind != nullptr},         {"id", descriptor.id != nullptr},
      {"version", descriptor.version != nullptr},   {"licence", descriptor.licence != nullptr},
      {"summary", descriptor.summary != nullptr},   {"needs", descriptor.needs != nullptr},
      {"provides", descriptor.provides != nullptr}, {"toolchain", descriptor.toolchain != nullptr},
      {"layout", descriptor.layout != nullptr},     {"options", descriptor.options != nullptr},
      {"create", descriptor.create != nullptr},     {"destroy", descriptor.destroy != nullptr},
  };
  for (const auto& field : fields) {
    if (field.present) continue;
    return refused(path,
                   concat("descriptor has no ", field.name, "; make it with MILLRACE_PLUGIN(...)"));
  }
  return {};
}

std::string with_article(std::string_view noun) {
  return concat(std::string_view("aeiou").contains(noun.front()) ? "an " : "a ", noun);
}

Result<> check_kind(const MillraceDescriptor& descriptor, const std::string& path,
                    std::string_view kind) {
  const std::string_view found = descriptor.kind;
  if (std::ranges::find(plugin_kinds, found) == std::ranges::end(plugin_kinds)) {
    std::vector<std::string> known(std::begin(plugin_kinds), std::end(plugin_kinds));
    return refused(path, concat("of unknown kind \"", found, "\"; kinds are ", joined(known),
                                nearest_hint(found, known)));
  }
  if (!kind.empty() && found != kind) {
    return refused(path,
                   concat(with_article(found), " plugin, expected ", with_article(kind),
                          " plugin; name it in the table of its kind and keep it in ", found, "/"));
  }
  if (const auto expected = revision_of_kind(found); descriptor.kind_revision != expected) {
    return refused(path, concat("built for revision ", descriptor.kind_revision, " of ", found,
                                " plugins, this kernel loads revision ", expected,
                                "; rebuild it against this SDK"));
  }
  return {};
}

Error other_toolchain(const std::string& path, std::string_view found, std::string_view expected) {
  return refused(path, concat("toolchain differs; rebuild it with the kernel's\n  plugin: ", found,
                              "\n  kernel: ", expected));
}

// Whether it shares more than codecs and operators do. One that offers a service may: whoever calls
// that shares coroutines with it.
bool is_system(const MillraceDescriptor& descriptor) {
  if (is_system_kind(descriptor.kind)) return true;
  return *descriptor.provides != '\0' && std::string_view(descriptor.toolchain).contains(";cc=");
}

Result<> check_toolchain(const MillraceDescriptor& descriptor, const std::string& path) {
  const std::string_view expected =
      is_system(descriptor) ? MILLRACE_TOOLCHAIN_SYSTEM : MILLRACE_TOOLCHAIN_PORTABLE;
  if (descriptor.toolchain == expected) return {};
  return other_toolchain(path, descriptor.toolchain, expected);
}

// As far as the file tells before it is mapped: its kind is not known yet.
Result<> check_toolchain_of_file(const std::string& path) {
  const auto found = text_of_section(path, MILLRACE_TOOLCHAIN_SECTION);
  if (!found) return Error{found.error().code, path + ": " + found.error().detail};
  const std::string_view portable = MILLRACE_TOOLCHAIN_PORTABLE;
  const std::string_view system = MILLRACE_TOOLCHAIN_SYSTEM;
  if (found->empty() || *found == portable || *found == system) return {};
  return other_toolchain(path, *found, found->contains(";cc=") ? system : portable);
}

const MillraceLayout* find_layout(const MillraceLayout* table, std::string_view type) {
  for (; table->type != nullptr; ++table) {
    if (table->type == type) return table;
  }
  return nullptr;
}

Result<> check_layout(const MillraceDescriptor& descriptor, const std::string& path) {
  const auto* ours = is_system(descriptor) ? detail::system_layout : detail::shared_layout;
  for (const auto* theirs = descriptor.layout; theirs->type != nullptr; ++theirs) {
    const auto* known = find_layout(ours, theirs->type);
    if (known == nullptr) {
      return refused(path,
                     concat("shares the type ", theirs->type, " (", theirs->size,
                            " bytes), which this kernel does not; rebuild it against this SDK"));
    }
    if (theirs->size != known->size || theirs->align != known->align) {
      return refused(path,
                     concat(theirs->type, " is ", theirs->size, " bytes aligned to ", theirs->align,
                            " in the plugin, ", known->size, " bytes aligned to ", known->align,
                            " in the kernel; rebuild it against this SDK"));
    }
  }
  return {};
}

Result<> check_id(const MillraceDescriptor& descriptor, const std::string& path) {
  const std::string_view id = descriptor.id;
  const bool letters = std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
  const bool dotted = id.find('.') != std::string_view::npos && !id.starts_with('.') &&
                      !id.ends_with('.') && id.find("..") == std::string_view::npos;
  if (letters && dotted) return {};
  return refused(path, concat("id \"", id,
                              "\" is not a dotted name of lower-case letters, digits, \"_\" and "
                              "\"-\", such as org.example.storage.tape"));
}

}  // namespace

Result<> inspect_plugin(const std::string& path) {
  auto symbols = exported_symbols(path);
  if (!symbols) return Error{symbols.error().code, path + ": " + symbols.error().detail};
  if (!contains(*symbols, MILLRACE_DESCRIPTOR_SYMBOL)) return no_descriptor(path, *symbols);
  return check_toolchain_of_file(path);
}

Result<> check_descriptor(const MillraceDescriptor& descriptor, const std::string& path,
                          std::string_view kind) {
  MR_CHECK(check_shape(descriptor, path));
  MR_CHECK(check_fields(descriptor, path));
  MR_CHECK(check_kind(descriptor, path, kind));
  MR_CHECK(check_toolchain(descriptor, path));
  MR_CHECK(check_layout(descriptor, path));
  return check_id(descriptor, path);
}

Result<PluginLibrary> load_plugin(const std::string& path, std::string_view kind) {
  MR_CHECK(inspect_plugin(path));
  MR_TRY(auto library, map_library(path));
  if (!library.has(MILLRACE_DESCRIPTOR_SYMBOL)) {
    return refused(path, "names " MILLRACE_DESCRIPTOR_SYMBOL
                         " but does not export it; build it with millrace_add_plugin()");
  }
  const auto& descriptor = library.get<const MillraceDescriptor>(MILLRACE_DESCRIPTOR_SYMBOL);
  MR_CHECK(check_descriptor(descriptor, path, kind));
  return PluginLibrary{path, &descriptor};
}

const char* file_being_mapped() noexcept { return being_mapped.load(); }

FileState state_of_file(const std::string& path) {
  std::error_code not_there;
  const auto key = std::filesystem::canonical(path, not_there).string();
  if (not_there) return FileState::not_mapped;
  auto& all = mapped();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.by_path.find(key);
  if (found == all.by_path.end()) return FileState::not_mapped;
  auto& [library, stamp, content] = found->second;
  const auto now = stamp_of(key);
  if (now == stamp) return FileState::as_mapped;
  // The same package installed again has the same file.
  if (content_hash(key) != content) return FileState::changed;
  stamp = now;
  return FileState::as_mapped;
}

}  // namespace millrace::kernel
