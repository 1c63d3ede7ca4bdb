// Bytes of an HTTP connection, received in pieces whose sizes the first byte chooses.
#include "plugins/transport/http/request_reader.h"

#include <algorithm>
#include <cstring>

#include "fuzz.h"

using namespace millrace;
using http_transport::HttpRequest;
using http_transport::RequestReader;

namespace {

constexpr std::size_t body_bytes_max = 4 << 10;

/// Takes what is complete. False once the reader refuses to go on.
bool take_requests(RequestReader& reader) {
  while (true) {
    const auto next = reader.next();
    if (!next) {
      fuzz::require(!next.error().reason.empty(), "a refusal says why");
      const auto status = next.error().status;
      fuzz::require(status == 0 || (status >= 400 && status < 600), "and answers with an error");
      return false;
    }
    if (!next->has_value()) return true;
    const HttpRequest& request = **next;
    fuzz::require(!request.method.empty(), "a request has a method");
    fuzz::require(request.method.size() + request.path.size() <= http_transport::head_bytes_max,
                  "a head is bounded");
    fuzz::require(request.body.size() <= body_bytes_max, "a body is bounded");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t piece_bytes = 1 + input.byte();
  RequestReader reader(body_bytes_max);
  for (Bytes rest = input.rest(); !rest.empty();) {
    const auto space = reader.space();
    const auto piece = rest.first(std::min({rest.size(), space.size(), piece_bytes}));
    std::memcpy(space.data(), piece.data(), piece.size());
    reader.filled(piece.size());
    rest = rest.subspan(piece.size());
    if (!take_requests(reader)) return 0;
    static_cast<void>(reader.take_wish_to_continue());
  }
  return 0;
}
