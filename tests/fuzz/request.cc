// A frame as a client sends it, without its size.
#include <millrace/kafka/codec.h>
#include <millrace/kafka/message_info.h>

#include "fuzz.h"

using namespace millrace;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto head = kafka::decode_request_head(fuzz::Input(data, size).buffer());
  if (!head) return 0;
  const auto* message = kafka::find_message(std::string(head->api->name) + "Request");
  fuzz::require(message != nullptr, "every API has a request");
  static_cast<void>(message->check(head->body, head->version));
  return 0;
}
