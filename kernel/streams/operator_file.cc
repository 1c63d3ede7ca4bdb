#include "kernel/streams/operator_file.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

constexpr const char* folder_name = ".operators";

std::string folder_of(const std::string& data) { return concat(data, "/", folder_name); }

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

Error refused(const std::string& path, std::string_view reason) {
  return {Errc::invalid_argument, concat(path, ": ", reason)};
}

// What is no file would be waited for, or read for ever.
Result<> check_is_file(const std::string& path) {
  if (!path.starts_with('/')) {
    return refused(path, "expected the whole path of a file on the broker's machine");
  }
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  switch (status.type()) {
    case std::filesystem::file_type::regular: return {};
    case std::filesystem::file_type::not_found: return refused(path, "there is no such file");
    case std::filesystem::file_type::none: return refused(path, failed.message());
    case std::filesystem::file_type::directory: return refused(path, "a folder, expected a file");
    default: return refused(path, "a device, pipe or socket, expected a file");
  }
}

}  // namespace

Result<PrivateCopy> load_private_copy(FileSystem& files, const std::string& path,
                                      const std::string& data, const PluginTrial& trial) {
  MR_CHECK(check_is_file(path));
  const auto inspected = inspect_plugin(path);
  if (!inspected) return Error{Errc::invalid_argument, inspected.error().detail};
  const auto content = read_file(files, path);
  if (!content) return Error{Errc::invalid_argument, content.error().detail};
  const auto folder = folder_of(data);
  MR_CHECK(files.make_folders(folder));
  PrivateCopy copy{{concat(folder, "/", content_id(*content), ".so")}};
  copy.is_new = !files.info(copy.library.path);
  if (copy.is_new) MR_CHECK(replace_file(files, copy.library.path, *content));
  auto library = load_tried(copy.library.path, "operators", trial);
  if (!library) {
    forget_private_copy(files, copy);
    return about_original({Errc::invalid_argument, library.error().detail}, copy.library.path,
                          path);
  }
  copy.library = *std::move(library);
  return copy;
}

void forget_private_copy(FileSystem& files, const PrivateCopy& copy) {
  if (copy.is_new) static_cast<void>(files.remove(copy.library.path));
}

Result<std::string> content_of(FileSystem& files, const std::string& path) {
  MR_CHECK(check_is_file(path));
  const auto content = read_file(files, path);
  if (!content) return Error{Errc::invalid_argument, content.error().detail};
  return content_id(*content);
}

std::string own_copy(const std::string& copy, const std::string& data) {
  return concat(folder_of(data), "/", std::filesystem::path(copy).filename().string());
}

Error about_original(Error error, const std::string& copy, const std::string& path) {
  for (auto at = error.detail.find(copy); at != std::string::npos;
       at = error.detail.find(copy, at + path.size())) {
    error.detail.replace(at, copy.size(), path);
  }
  return error;
}

}  // namespace millrace::kernel
