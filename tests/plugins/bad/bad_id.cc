// An id that is not a dotted name.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.id = "My Codec";
  return descriptor;
}();
