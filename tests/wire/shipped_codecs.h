// The compression plugins as they are shipped, for tools that open batches.
#pragma once

#include <memory>
#include <string>

#include <millrace/codec.h>

namespace millrace::wire {

/// gzip, snappy, lz4 and zstd from the plugins beside the running program, loaded once; the process
/// ends with a message when one cannot be.
const Codecs& shipped_codecs();

/// The folder that holds this program and the broker: build/PRESET/bin.
std::string program_folder();

}  // namespace millrace::wire
