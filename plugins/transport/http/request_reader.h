// Bytes of a connection to requests, with the parser of Boost.Beast, which only this part knows.
// Requests may follow each other without waiting (pipelining): what is behind one stays for the
// next.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <string>

#include <millrace/buffer.h>

#include "message.h"

namespace millrace::http_transport {

/// Request line and fields together.
inline constexpr std::size_t head_bytes_max = 16 << 10;

/// Why no more requests are read from a connection.
struct Refusal {
  unsigned status = 0;  ///< to answer with; 0: the other end does not speak HTTP
  std::string reason;
};

/// [its connection's shard]
class RequestReader {
 public:
  explicit RequestReader(std::size_t body_bytes_max);
  ~RequestReader();

  /// Where the next bytes received go; then filled().
  MutableBytes space() noexcept;
  void filled(std::size_t bytes);

  /// The next request; none when it is not complete yet. After a refusal there is nothing more to
  /// read.
  std::expected<std::optional<HttpRequest>, Refusal> next();
  /// Bytes of a request have come that is not complete.
  bool begun() const noexcept;
  /// The client waits for a word before it sends the body (Expect: 100-continue). True once per
  /// request.
  bool take_wish_to_continue();

 private:
  struct Parsing;

  std::unique_ptr<Parsing> parsing_;
};

}  // namespace millrace::http_transport
