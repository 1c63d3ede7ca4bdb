// A system kind built by another compiler: codecs may be, these may not.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.kind = "storage";
  descriptor.kind_revision = millrace::revision_of_kind("storage");
  return descriptor;
}();
