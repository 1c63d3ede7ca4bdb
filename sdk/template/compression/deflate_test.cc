// The built plugin against the contract of its kind: round trips, bounds, cut and hostile input.
#include <millrace/testing/codec_contract.h>

namespace millrace::testing {

INSTANTIATE_TEST_SUITE_P(Deflate, CodecContract,
                         ::testing::Values(CodecCase{"deflate", CompressionId{7},
                                                     [] { return load_codec(PLUGIN); }}));

}  // namespace millrace::testing
