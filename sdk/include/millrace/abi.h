// The door between the kernel and a plugin: one constant with C layout, read before any C++ of the
// plugin is trusted. Its symbol's name carries the ABI major; its fields carry the rest. This file
// is frozen: a change of layout here is a new major.
#pragma once

#include <cstddef>
#include <cstdint>

#include <millrace/options.h>

namespace millrace {
class Plugin;
}

extern "C" {

/// Size and alignment of one type that crosses the boundary.
struct MillraceLayout {
  const char* type;
  std::uint32_t size;
  std::uint32_t align;
};

struct MillraceDescriptor {
  std::uint32_t magic;            ///< MILLRACE_MAGIC
  std::uint32_t descriptor_size;  ///< sizeof(MillraceDescriptor)
  std::uint16_t abi_major;
  std::uint16_t abi_minor;  ///< of the SDK it was built with; at most the kernel's
  std::uint16_t kind_revision;
  std::uint16_t reserved;
  const char* kind;               ///< "storage"
  const char* id;                 ///< "org.millrace.storage.filelog"
  const char* version;            ///< "0.1.0"
  const char* licence;            ///< SPDX: "Apache-2.0"
  const char* summary;            ///< one sentence for `millrace plugin show`
  const char* needs;              ///< services it calls, by id, separated by spaces; "" for none
  const char* provides;           ///< services it offers, likewise
  const char* toolchain;          ///< MILLRACE_TOOLCHAIN_SYSTEM or MILLRACE_TOOLCHAIN_PORTABLE
  const MillraceLayout* layout;   ///< ends with a null type
  const MillraceOption* options;  ///< ends with a null name
  millrace::Plugin* (*create)() noexcept;  ///< null on failure; lets no exception out
  void (*destroy)(millrace::Plugin*) noexcept;
};

}  // extern "C"

/// "MRPL"
#define MILLRACE_MAGIC 0x4d52504cU
#define MILLRACE_ABI_MAJOR 1
#define MILLRACE_ABI_MINOR 12
#define MILLRACE_DESCRIPTOR_SYMBOL "millrace_plugin_v1"
/// The section that holds the toolchain's text once more, so that it can be read from the file: to
/// map a library of another toolchain may already be the end of the process.
#define MILLRACE_TOOLCHAIN_SECTION "millrace_toolchain"

#define MILLRACE_DETAIL_STRING2(x) #x
#define MILLRACE_DETAIL_STRING(x) MILLRACE_DETAIL_STRING2(x)

#if defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define MILLRACE_DETAIL_STDLIB "libstdcxx=cxx11"
#elif defined(_LIBCPP_VERSION)
#define MILLRACE_DETAIL_STDLIB "libcxx"
#else
#define MILLRACE_DETAIL_STDLIB "libstdcxx=old"
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MILLRACE_DETAIL_SANITIZER "address"
#elif __has_feature(thread_sanitizer)
#define MILLRACE_DETAIL_SANITIZER "thread"
#endif
#endif
#if !defined(MILLRACE_DETAIL_SANITIZER)
#if defined(__SANITIZE_ADDRESS__)
#define MILLRACE_DETAIL_SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define MILLRACE_DETAIL_SANITIZER "thread"
#else
#define MILLRACE_DETAIL_SANITIZER "none"
#endif
#endif

/// Facts that must be equal on both sides. Codecs, operators and aggregates cross with standard
/// library types alone; the system kinds also share coroutine frames, so the compiler counts.
#define MILLRACE_TOOLCHAIN_PORTABLE MILLRACE_DETAIL_STDLIB ";std=23;san=" MILLRACE_DETAIL_SANITIZER
#if defined(__clang__)
#define MILLRACE_TOOLCHAIN_SYSTEM \
  MILLRACE_TOOLCHAIN_PORTABLE ";cc=clang" MILLRACE_DETAIL_STRING(__clang_major__)
#else
#define MILLRACE_TOOLCHAIN_SYSTEM \
  MILLRACE_TOOLCHAIN_PORTABLE ";cc=gcc" MILLRACE_DETAIL_STRING(__GNUC__)
#endif
