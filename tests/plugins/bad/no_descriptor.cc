// A shared object like any other.
#include "../probe.h"

extern "C" __attribute__((visibility("default"))) int answer() { return 42; }
