// The codecs of the compression plugins as they are shipped, for tests that open compressed
// batches.
#pragma once

#include <millrace/codec.h>

namespace millrace::testing {

/// Loads gzip, snappy, lz4 and zstd on first use; they stay loaded. A plugin that cannot be loaded
/// ends the test program.
const Codecs& loaded_codecs();

}  // namespace millrace::testing
