// Error has another size here than in the kernel.
#include "../probe.h"

namespace {
constexpr MillraceLayout layout[] = {
    {"Buffer", sizeof(millrace::Buffer), alignof(millrace::Buffer)},
    {"Error", sizeof(millrace::Error) + 8, alignof(millrace::Error)},
    {nullptr, 0, 0},
};
}  // namespace

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.layout = layout;
  return descriptor;
}();
