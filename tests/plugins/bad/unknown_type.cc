// Shares a type that the kernel has never heard of.
#include "../probe.h"

namespace {
constexpr MillraceLayout layout[] = {{"Teleport", 16, 8}, {nullptr, 0, 0}};
}  // namespace

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v1 = [] {
  auto descriptor = millrace::probe::descriptor();
  descriptor.layout = layout;
  return descriptor;
}();
