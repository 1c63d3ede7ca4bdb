// The shipped codecs, loaded once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/testing/loaded_codec.h>

#include "fuzz.h"

namespace millrace::fuzz {

inline const std::vector<std::shared_ptr<const Codec>>& loaded_codecs() {
  static const auto loaded = [] {
    std::vector<std::shared_ptr<const Codec>> codecs;
    for (const std::string name : {"gzip", "snappy", "lz4", "zstd"}) {
      codecs.push_back(testing::load_codec(MILLRACE_PLUGIN_DIR "/compression/" + name + ".so"));
      require(codecs.back() != nullptr, name + " is loaded");
    }
    return codecs;
  }();
  return loaded;
}

}  // namespace millrace::fuzz
