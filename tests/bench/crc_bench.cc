// How fast the ways to the crc of a batch are, at sizes from a small request's to that of a batch.
// The bytes are in the cache up to the last size, which reads memory.
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/bytes.h>

#include "sdk/src/crc.h"

namespace millrace {
namespace {

std::vector<std::byte> some_bytes(std::size_t size) {
  std::minstd_rand random(5);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

template <class Crc>
void measure(benchmark::State& state, Crc crc) {
  const auto bytes = some_bytes(static_cast<std::size_t>(state.range(0)));
  std::uint32_t value = 0;
  for (auto _ : state) benchmark::DoNotOptimize(value = crc(bytes, value));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void sizes(benchmark::internal::Benchmark* one) {
  for (const std::int64_t size : {100, 1000, 10'000, 1'000'000, 256 << 20}) one->Arg(size);
}

BENCHMARK_CAPTURE(measure, crc32c, &crc32c)->Apply(sizes);
BENCHMARK_CAPTURE(measure, crc32c_portable, &detail::crc32c_portable)->Apply(sizes);
BENCHMARK_CAPTURE(measure, crc32_of_old_formats, &crc32)->Apply(sizes);
#if defined(__x86_64__)
BENCHMARK_CAPTURE(measure, crc32c_one_stream, &detail::crc32c_by_instruction)->Apply(sizes);
BENCHMARK_CAPTURE(measure, crc32c_three_way, &detail::crc32c_three_way)->Apply(sizes);
#endif

}  // namespace
}  // namespace millrace

BENCHMARK_MAIN();
