#include "request_reader.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>

namespace millrace::http_transport {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

using Parser = http::request_parser<http::string_body>;
using Fields = Parser::value_type;

/// Pieces of what is not parsed yet: a head, or what stands between two chunks.
constexpr std::size_t unparsed_bytes_max = 2 * head_bytes_max;

/// "0\r\n\r\n", the least that ends a body in chunks. Beast 1.81 asserts that it has as much when
/// it is asked again after the "0\r\n".
constexpr std::size_t last_chunk_bytes_min = 5;

Refusal refusal_of(const beast::error_code& error) {
  unsigned status = 400;
  if (error == http::error::header_limit) status = 431;
  if (error == http::error::body_limit) status = 413;
  if (error == http::error::bad_version) status = 505;
  return {status, error.message()};
}

/// What is no request line of HTTP is not answered in HTTP.
std::optional<Refusal> foreign(std::string_view begin) {
  const auto first = static_cast<unsigned char>(begin.front());
  if (first == 0x16) return Refusal{0, "a TLS handshake: this listener is plaintext, use http://"};
  if (first == 0) {
    return Refusal{0, "what may be a Kafka request: Kafka is served by the kafka transport"};
  }
  if (first < 0x21 || first > 0x7e) return Refusal{0, "bytes that are no HTTP request"};
  return std::nullopt;
}

/// "http://host:9644/metrics?x=1" and "/metrics?x=1" to "/metrics".
std::string path_of(std::string_view target) {
  if (const auto scheme = target.find("://"); scheme != target.npos && !target.starts_with('/')) {
    target.remove_prefix(scheme + 3);
    const auto slash = target.find('/');
    target = slash == target.npos ? std::string_view("/") : target.substr(slash);
  }
  return std::string(target.substr(0, target.find_first_of("?#")));
}

/// "[::1]:9644" to "::1", "localhost:9644" to "localhost".
std::string host_of(std::string_view authority) {
  if (authority.starts_with('[')) {
    return std::string(authority.substr(1, authority.find(']') - 1));
  }
  return std::string(authority.substr(0, authority.find(':')));
}

std::string text_of(const Fields& fields, http::field name) {
  const auto value = fields[name];
  return {value.data(), value.size()};
}

/// What the parser lets through and this server does not take.
std::optional<Refusal> unsupported(const Parser& parser) {
  const auto& fields = parser.get();
  const auto hosts = fields.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && fields.version() == 11)) {
    return Refusal{400, "expected one Host field, found " + std::to_string(hosts)};
  }
  if (fields.count(http::field::transfer_encoding) > 0 && !parser.chunked()) {
    return Refusal{501, "of all transfer encodings only chunked is understood"};
  }
  const auto expected = fields[http::field::expect];
  if (!expected.empty() && !beast::iequals(expected, "100-continue")) {
    return Refusal{417, "of all expectations only 100-continue can be met"};
  }
  return std::nullopt;
}

HttpRequest request_of(Parser& parser) {
  const bool keep_alive = parser.keep_alive();
  auto fields = parser.release();
  const auto method = fields.method_string();
  auto authority = text_of(fields, http::field::host);
  return {.method = {method.data(), method.size()},
          .path = path_of({fields.target().data(), fields.target().size()}),
          .host = host_of(authority),
          .authority = std::move(authority),
          .origin = text_of(fields, http::field::origin),
          .content_type = text_of(fields, http::field::content_type),
          .body = std::move(fields.body()),
          .keep_alive = keep_alive};
}

}  // namespace

struct RequestReader::Parsing {
  explicit Parsing(std::size_t body_max) : body_bytes_max(body_max) { restart(); }

  void restart() {
    parser.emplace();
    parser->header_limit(head_bytes_max);
    parser->body_limit(body_bytes_max);
    parser->eager(true);
    bytes_wanted = 1;
    head_checked = false;
    wish_taken = false;
  }

  /// Parses what it can. False when more bytes are needed.
  std::expected<bool, Refusal> advance() {
    while (!parser->is_done() && unparsed.size() >= bytes_wanted) {
      beast::error_code error;
      const auto used =
          parser->put(boost::asio::const_buffer(unparsed.data(), unparsed.size()), error);
      unparsed.erase(0, used);
      bytes_wanted =
          error && parser->is_header_done() && parser->chunked() ? last_chunk_bytes_min : 1;
      if (error && error != http::error::need_more) return std::unexpected(refusal_of(error));
      if (error || used == 0) break;
    }
    return parser->is_done();
  }

  const std::size_t body_bytes_max;
  std::array<std::byte, 8 << 10> received;
  std::string unparsed;
  std::size_t bytes_wanted = 1;  ///< in `unparsed`, before the parser is asked again
  std::optional<Parser> parser;
  bool head_checked = false;
  bool wish_taken = false;
};

RequestReader::RequestReader(std::size_t body_bytes_max)
    : parsing_(std::make_unique<Parsing>(body_bytes_max)) {}
RequestReader::~RequestReader() = default;

MutableBytes RequestReader::space() noexcept { return parsing_->received; }

void RequestReader::filled(std::size_t bytes) {
  parsing_->unparsed += as_text(Bytes(parsing_->received).first(bytes));
}

bool RequestReader::begun() const noexcept {
  return !parsing_->unparsed.empty() || parsing_->parser->got_some();
}

std::expected<std::optional<HttpRequest>, Refusal> RequestReader::next() {
  auto& parsing = *parsing_;
  if (!begun()) return std::nullopt;
  if (!parsing.parser->got_some()) {
    if (auto refusal = foreign(parsing.unparsed)) return std::unexpected(*std::move(refusal));
  }
  const auto done = parsing.advance();
  if (!done) return std::unexpected(done.error());
  if (parsing.parser->is_header_done() && !std::exchange(parsing.head_checked, true)) {
    if (auto refusal = unsupported(*parsing.parser)) return std::unexpected(*std::move(refusal));
  }
  if (!*done) {
    if (parsing.unparsed.size() <= unparsed_bytes_max) return std::nullopt;
    return std::unexpected(Refusal{431, "a field or a chunk's head that does not end"});
  }
  auto request = request_of(*parsing.parser);
  parsing.restart();
  return request;
}

bool RequestReader::take_wish_to_continue() {
  const auto& parser = *parsing_->parser;
  if (!parser.is_header_done() || parser.is_done() || parser.get().version() < 11) return false;
  if (parser.get().count(http::field::expect) == 0) return false;
  return !std::exchange(parsing_->wish_taken, true);
}

}  // namespace millrace::http_transport
