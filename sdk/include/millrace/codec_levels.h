// What a compression plugin has that can be told with each call how hard to try: for topics that
// set compression.gzip.level and its like (KIP-390). Found through Plugin::extension().
#pragma once

#include <string_view>

#include <millrace/buffer.h>
#include <millrace/types.h>

namespace millrace {

/// Stateless after start(), as its codecs are.  [any thread]
class CodecLevels {
 public:
  static constexpr std::string_view extension_id = "millrace.compression.levels/1";
  virtual ~CodecLevels() = default;
  /// As compress() of the plugin's codec `id`, at `level` as Kafka's setting counts them. One that
  /// the library does not know counts as the nearest that it knows.
  virtual Result<Buffer> compress(CompressionId id, Bytes input, int level) const = 0;
};

}  // namespace millrace
