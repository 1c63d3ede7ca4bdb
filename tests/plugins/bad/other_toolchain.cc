// Built against another standard library.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.toolchain = "libcxx;std=23;san=none";
  return descriptor;
}();
