// Built with a later SDK of the same major.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.abi_minor = MILLRACE_ABI_MINOR + 1;
  return descriptor;
}();
