// Implements what storage plugins had to implement before.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.kind = "storage";
  descriptor.kind_revision = 1;
  descriptor.toolchain = MILLRACE_TOOLCHAIN_SYSTEM;
  return descriptor;
}();
