// Whole messages and whole frames: what a transport and a client call.
//
//   MR_TRY(auto request, decode_request_head(frame));            // a server
//   MR_TRY(auto fetch, request.decode<FetchRequest>());
//   FetchResponse answer{...};
//   MR_TRY(auto payload, encode_response(request, answer));      // ready to send
//
//   MR_TRY(auto payload, encode_request(correlation_id, "client", version, fetch));   // a client
//   MR_TRY(auto answer, decode_response<FetchResponse>(frame, version));
//
// A decoded message owns its frame; see the comment in each generated header.  [any thread]
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <millrace/kafka/api.h>
#include <millrace/kafka/headers.h>
#include <millrace/kafka/wire_reader.h>
#include <millrace/kafka/wire_writer.h>

namespace millrace::kafka {

namespace detail {

/// Errc::unsupported unless `versions` contains `version`.
Result<> check_version(std::string_view message, VersionRange versions, std::int16_t version);
/// Starts a frame: room for its size, then the header.
void begin_request(WireWriter& out, ApiKey api, std::int16_t version, std::int32_t correlation_id,
                   std::string_view client_id);
void begin_response(WireWriter& out, ApiKey api, std::int16_t version, std::int32_t correlation_id);

}  // namespace detail

/// A message body alone. Bytes behind it are left unread, as Kafka does.
template <class Message>
Result<Message> decode(Buffer body, std::int16_t version) {
  MR_CHECK(detail::check_version(Message::message_name, Message::message_versions, version));
  WireReader in(std::move(body));
  Message message;
  read(in, version, message);
  MR_CHECK(in.finish());
  return message;
}

template <class Message>
Result<Payload> encode(const Message& message, std::int16_t version) {
  MR_CHECK(detail::check_version(Message::message_name, Message::message_versions, version));
  WireWriter out;
  write(out, version, message);
  return std::move(out).finish();
}

/// A request whose header is decoded and whose body is not yet.
struct RequestHead {
  const ApiInfo* api = nullptr;  ///< never null in a decoded one
  std::int16_t version = 0;      ///< may be outside `api->known`: the caller decides what to answer
  std::int32_t correlation_id = 0;
  std::optional<std::string_view> client_id;  ///< points into `body`'s block
  Buffer body;

  template <class Request>
  Result<Request> decode() const {
    return kafka::decode<Request>(body, version);
  }
};

/// `frame` is without its size. Errc::unsupported for an API that does not exist, Errc::corrupt for
/// a header that cannot be read: in both cases nothing can be answered, so the caller hangs up.
Result<RequestHead> decode_request_head(Buffer frame);

/// A frame with its size in front. `response` must live until this returns; the payload does not
/// refer to it.
template <class Response>
Result<Payload> encode_response(std::int16_t version, std::int32_t correlation_id,
                                const Response& response) {
  MR_CHECK(detail::check_version(Response::message_name, Response::message_versions, version));
  WireWriter out;
  detail::begin_response(out, Response::api_key, version, correlation_id);
  write(out, version, response);
  return std::move(out).finish_frame();
}
template <class Response>
Result<Payload> encode_response(const RequestHead& request, const Response& response) {
  return encode_response(request.version, request.correlation_id, response);
}

/// A frame with its size in front.
template <class Request>
Result<Payload> encode_request(std::int32_t correlation_id, std::string_view client_id,
                               std::int16_t version, const Request& request) {
  MR_CHECK(detail::check_version(Request::message_name, Request::message_versions, version));
  WireWriter out;
  detail::begin_request(out, Request::api_key, version, correlation_id, client_id);
  write(out, version, request);
  return std::move(out).finish_frame();
}

/// The answer to a request of `version`; `frame` is without its size. Errc::conflict when it
/// answers another request.
template <class Response>
Result<Response> decode_response(Buffer frame, std::int16_t version, std::int32_t correlation_id) {
  MR_CHECK(detail::check_version(Response::message_name, Response::message_versions, version));
  const auto header_version = info_of(Response::api_key).response_header_version(version);
  WireReader in(std::move(frame));
  ResponseHeader header;
  read(in, header_version, header);
  Response response;
  read(in, version, response);
  MR_CHECK(in.finish());
  if (header.correlation_id != correlation_id) {
    return Error{Errc::conflict, "answer to request " + std::to_string(header.correlation_id) +
                                     ", expected " + std::to_string(correlation_id)};
  }
  return response;
}

}  // namespace millrace::kafka
