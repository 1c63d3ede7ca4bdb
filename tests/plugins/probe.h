// Shared by the plugins of this folder: a descriptor to spoil, and marks in the environment by
// which a test sees what has run: MILLRACE_PROBE_LOADED once the library's constructors ran,
// MILLRACE_PROBE_CALLED once create() did.
#pragma once

#include <cstdlib>

#include <millrace/plugin.h>

namespace millrace::probe {

inline void mark(const char* name) { ::setenv(name, "1", 1); }
__attribute__((constructor)) inline void on_load() { mark("MILLRACE_PROBE_LOADED"); }

/// Must never come to life.
inline Plugin* create() noexcept {
  mark("MILLRACE_PROBE_CALLED");
  return nullptr;
}
inline void destroy(Plugin*) noexcept {}

/// Correct in every field; `create` marks that it was called.
consteval MillraceDescriptor descriptor() {
  return {.magic = MILLRACE_MAGIC,
          .descriptor_size = sizeof(MillraceDescriptor),
          .abi_major = MILLRACE_ABI_MAJOR,
          .abi_minor = MILLRACE_ABI_MINOR,
          .kind_revision = 1,
          .reserved = 0,
          .kind = "compression",
          .id = "org.example.compression.bad",
          .version = "0.1.0",
          .licence = "Apache-2.0",
          .summary = "A plugin for tests",
          .needs = "",
          .provides = "",
          .toolchain = MILLRACE_TOOLCHAIN_PORTABLE,
          .layout = detail::shared_layout,
          .options = detail::no_options,
          .create = &create,
          .destroy = &destroy};
}

}  // namespace millrace::probe

#define MILLRACE_PROBE_EXPORT extern "C" __attribute__((visibility("default"))) constinit const
