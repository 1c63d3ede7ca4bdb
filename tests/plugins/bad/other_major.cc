// Built for a later plugin ABI: the symbol's name says so.
#include "../probe.h"

MILLRACE_PROBE_EXPORT MillraceDescriptor millrace_plugin_v2 = millrace::probe::descriptor();
