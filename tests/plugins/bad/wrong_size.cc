// A descriptor with fewer fields.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.descriptor_size = sizeof(MillraceDescriptor) - sizeof(void*);
  return descriptor;
}();
