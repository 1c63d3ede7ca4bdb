// Calls a function that nobody defines.
#include "../probe.h"

extern "C" int millrace_test_defined_nowhere();

namespace {
millrace::Plugin* create() noexcept {
  return millrace_test_defined_nowhere() == 0 ? nullptr : millrace::probe::create();
}
}  // namespace

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.create = &create;
  return descriptor;
}();
