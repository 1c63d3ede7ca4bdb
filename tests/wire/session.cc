#include "session.h"

#include <map>
#include <utility>

#include <millrace/bytes.h>
#include <millrace/error_code.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/message_info.h>

#include "golden_file.h"

namespace millrace::wire {

namespace {

namespace json = boost::json;

Result<json::object> body_of(const Buffer& body, std::string_view name, std::int16_t version) {
  const auto* message = kafka::find_message(name);
  if (!message) return Error{Errc::not_found, "no message " + std::string(name)};
  MR_TRY(const auto text, message->to_json(body, version));
  return json::parse(text).as_object();
}

Result<Event::Kind> kind_of(std::string_view direction) {
  static const std::map<std::string_view, Event::Kind> kinds{
      {"open", Event::Kind::open},
      {"req", Event::Kind::request},
      {"resp", Event::Kind::answer},
      {"client-closed", Event::Kind::client_closed},
      {"server-closed", Event::Kind::server_closed}};
  const auto found = kinds.find(direction);
  if (found == kinds.end()) {
    return Error{Errc::corrupt, "dir is '" + std::string(direction) + "', which no event has"};
  }
  return found->second;
}

Result<Event> parse_event(std::string_view line) {
  const auto parsed = json::parse(line);
  const auto& object = parsed.as_object();
  const auto integer = [&object]<class T>(const char* name, T& into) {
    const auto* value = object.if_contains(name);
    if (value && value->is_number()) into = value->to_number<T>();
  };
  Event event;
  MR_TRY(event.kind, kind_of(object.at("dir").as_string()));
  integer("seq", event.number);
  integer("conn", event.connection);
  integer("key", event.key);
  integer("version", event.version);
  integer("corr", event.correlation_id);
  if (const auto* client = object.if_contains("client"); client && client->is_string()) {
    event.client = client->as_string();
  }
  if (const auto* hex = object.if_contains("hex")) {
    MR_TRY(event.frame, parse_hex(hex->as_string()));
  }
  event.raw = object.contains("raw");
  event.readable = object.contains("json");
  return event;
}

// Answers come in the order of their requests; some requests have none.
void pair_up(std::vector<Event>& events) {
  std::map<std::pair<int, std::int32_t>, std::size_t> asked;
  std::map<int, std::size_t> last_raw;
  for (std::size_t at = 0; at < events.size(); ++at) {
    auto& event = events[at];
    const std::pair of_connection(event.connection, event.correlation_id);
    if (event.kind == Event::Kind::request) {
      if (event.raw) {
        last_raw[event.connection] = at;
      } else {
        asked[of_connection] = at;
      }
    } else if (event.kind == Event::Kind::answer) {
      const auto found = asked.find(of_connection);
      if (event.raw ? !last_raw.contains(event.connection) : found == asked.end()) continue;
      const auto request = event.raw ? last_raw[event.connection] : found->second;
      event.partner = request;
      events[request].partner = at;
    }
  }
}

}  // namespace

std::string Event::label() const {
  if (kind != Kind::request && kind != Kind::answer) {
    return std::to_string(number) + " connection " + std::to_string(connection);
  }
  const auto* api = kafka::find_api(key);
  auto text = std::to_string(number) + " " +
              (api   ? std::string(api->name)
               : raw ? std::string("raw token")
                     : "API " + std::to_string(key));
  if (!raw) text += " v" + std::to_string(version);
  return text;
}

Result<json::object> Event::body() const {
  if (kind == Kind::answer) return answer_body(frame, key, version);
  MR_TRY(const auto head, kafka::decode_request_head(frame));
  return body_of(head.body, std::string(head.api->name) + "Request", version);
}

Result<json::object> answer_body(const Buffer& frame, std::int16_t key, std::int16_t version) {
  const auto* api = kafka::find_api(key);
  if (!api) return Error{Errc::not_found, "no API " + std::to_string(key)};
  kafka::WireReader in(frame);
  kafka::ResponseHeader header;
  read(in, api->response_header_version(version), header);
  MR_CHECK(in.finish());
  const auto body = in.rest();
  // A version of ApiVersions that the broker does not know is answered in version 0 (KIP-511).
  if (api->key == kafka::ApiKey::api_versions && body.size() >= 2 &&
      load_be<std::int16_t>(body.data()) ==
          static_cast<std::int16_t>(ErrorCode::unsupported_version)) {
    version = 0;
  }
  return body_of(body, std::string(api->name) + "Response", version);
}

Result<Session> read_session(const std::string& path) {
  Session session{.path = path};
  Result<> status;
  MR_CHECK(for_each_line(path, [&](std::string_view line) {
    if (!status) return;
    try {
      auto event = parse_event(line);
      if (event) {
        session.events.push_back(*std::move(event));
      } else {
        status = std::move(event).error();
      }
    } catch (const std::exception& error) {
      status = Error{Errc::corrupt, error.what()};
    }
    if (!status) {
      status.error().detail = path + " line " + std::to_string(session.events.size() + 1) + ": " +
                              status.error().detail;
    }
  }));
  MR_CHECK(status);
  pair_up(session.events);
  return session;
}

}  // namespace millrace::wire
