// Compressed bytes from a stranger: never more than the bound comes out, and what a codec wrote
// itself it reads again.
#include "codecs.h"

using namespace millrace;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t output_bytes_max = 1 << 20;
  fuzz::Input input(data, size);
  const auto& codecs = fuzz::loaded_codecs();
  const auto& codec = *codecs[input.byte() % codecs.size()];
  const auto opened = codec.decompress(input.rest(), output_bytes_max);
  if (opened) fuzz::require(opened->size() <= output_bytes_max, "the output is bounded");

  const auto packed = fuzz::need(codec.compress(input.rest()), "anything can be compressed");
  const auto again = fuzz::need(codec.decompress(packed, input.rest().size()), "and opened");
  fuzz::require(again.text() == input.text(), "and is the same then");
  return 0;
}
