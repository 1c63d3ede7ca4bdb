// A system kind built by another compiler: codecs may be, these may not.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.kind = "storage";
  return descriptor;
}();
