#include "kernel/streams/operator_file.h"

#include <cstdint>
#include <cstdio>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

constexpr const char* folder_name = ".operators";

/// FNV-1a, 64 bits.
std::string content_id(Bytes content) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const auto byte : content) {
    hash ^= std::to_integer<std::uint64_t>(byte);
    hash *= 0x100000001b3U;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace

Result<PluginLibrary> load_private_copy(FileSystem& files, const std::string& path,
                                        const std::string& data) {
  MR_CHECK(inspect_plugin(path));
  MR_TRY(const auto content, read_file(files, path));
  const auto folder = concat(data, "/", folder_name);
  MR_CHECK(files.make_folders(folder));
  const auto copy = concat(folder, "/", content_id(content), ".so");
  if (!files.info(copy)) MR_CHECK(replace_file(files, copy, content));
  return load_plugin(copy, "operators");
}

}  // namespace millrace::kernel
