// Any message of any version: two bytes choose which, the rest is its body. What was accepted is
// written again, and what was written reads as the same.
#include <millrace/kafka/message_info.h>

#include "fuzz.h"

using namespace millrace;

namespace {

Buffer flat(const Payload& payload) {
  return fuzz::need(payload.flatten(), "a message is in memory");
}

}  // namespace

/// `--names` prints the table in its order, for make_corpus.py.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc != 2 || std::string_view((*argv)[1]) != "--names") return 0;
  for (const auto* message : kafka::message_table()) {
    std::printf("%.*s\n", static_cast<int>(message->name.size()), message->name.data());
  }
  std::exit(0);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto table = kafka::message_table();
  const auto chosen = input.byte() + 256U * input.byte();
  const auto& message = *table[chosen % table.size()];
  const auto span = message.versions.max - message.versions.min + 1;
  const auto version = static_cast<std::int16_t>(message.versions.min + input.byte() % span);

  const auto body = input.buffer();
  auto first = message.recode(body, version);
  if (!first) return 0;
  static_cast<void>(message.to_json(body, version));
  const auto written = flat(*first);
  const auto again = flat(fuzz::need(message.recode(written, version),
                                     std::string(message.name) + ": what was written is read"));
  fuzz::require(written.text() == again.text(), "what was written is written the same again");
  return 0;
}
