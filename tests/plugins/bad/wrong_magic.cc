// The symbol's name fits, what it holds does not.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.magic = 0xdeadbeefU;
  return descriptor;
}();
