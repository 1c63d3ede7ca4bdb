// The codecs of the compression plugins as they are shipped, for tests that open compressed
// batches.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <millrace/codec.h>
#include <millrace/testing/loaded_codec.h>

namespace millrace::testing {

/// gzip, snappy, lz4 and zstd; loaded on first use.
inline const Codecs& loaded_codecs() {
  static const auto kept = [] {
    std::vector<std::shared_ptr<const Codec>> all;
    for (const std::string name : {"gzip", "snappy", "lz4", "zstd"}) {
      all.push_back(load_codec(MILLRACE_PLUGIN_DIR "/compression/" + name + ".so"));
      if (!all.back()) std::abort();
    }
    return all;
  }();
  static const auto codecs = [] {
    Codecs all;
    for (const auto& codec : kept) all.add(*codec);
    return all;
  }();
  return codecs;
}

}  // namespace millrace::testing
