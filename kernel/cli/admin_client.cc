#include "kernel/cli/admin_client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <millrace/utf8.h>

#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t receive_bytes = 64UL << 10;
constexpr std::size_t answer_bytes_max = 64UL << 20;

Error malformed(const std::string& address) {
  return {Errc::corrupt,
          shown(address) +
              " does not answer as the admin API does: is it transport http? Another one is named "
              "with --admin HOST:PORT"};
}

// A stream's operator may take its time to be replaced.
constexpr Duration change_within = std::chrono::seconds(60);
constexpr Duration answer_within = std::chrono::seconds(10);

constexpr std::string_view head_end = "\r\n\r\n";

// How long the answer is that begins so, once its head is there: a broker may keep the connection
// for a while that it has answered on.
std::optional<std::size_t> answer_bytes(std::string_view answer) {
  constexpr std::string_view length = "\r\nContent-Length: ";
  const auto body_at = answer.find(head_end);
  if (body_at == std::string_view::npos) return std::nullopt;
  const auto length_at = answer.substr(0, body_at).find(length);
  if (length_at == std::string_view::npos) return std::nullopt;
  std::size_t bytes = 0;
  std::from_chars(answer.data() + length_at + length.size(), answer.data() + body_at, bytes);
  return body_at + head_end.size() + std::min(bytes, answer_bytes_max);
}

Task<std::string> receive_all(Stream& stream) {
  std::string answer;
  std::vector<std::byte> space(receive_bytes);
  while (answer.size() < answer_bytes_max) {
    MR_CO_TRY(const auto bytes, co_await stream.receive(space));
    if (bytes == 0) break;
    answer += as_text(Bytes(space).first(bytes));
    const auto whole = answer_bytes(answer);
    if (whole && answer.size() >= *whole) break;
  }
  co_return std::move(answer);
}

Task<std::string> exchange(Network& network, Address where, std::string request) {
  MR_CO_TRY(auto stream, co_await network.connect(std::move(where)));
  MR_CO_CHECK(co_await stream->send(Payload(Buffer::copy_of(request))));
  co_return co_await receive_all(*stream);
}

Error no_answer(const std::string& address, const Error& why, Duration limit, Duration took) {
  const bool late = why.code == Errc::timed_out;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  // Whatever it is, nobody answers there.
  return {why.code == Errc::not_found || why.code == Errc::corrupt ? Errc::io : why.code,
          concat("no admin API of a broker at ", shown(address), ": ",
                 late ? concat("no answer for ", limit / std::chrono::seconds(1), " s")
                      : concat(why.detail, ", after ", ms, " ms"),
                 "; does the broker run with transport http, and does that listen there? "
                 "Another one is named with --admin HOST:PORT")};
}

Errc code_of(unsigned status) {
  switch (status) {
    case 404: return Errc::not_found;
    case 409: return Errc::conflict;
    case 400: return Errc::invalid_argument;
    default: return Errc::internal;
  }
}

}  // namespace

ReplacedWhere replaced_where(const boost::json::object& answer) {
  std::vector<std::string> done;
  std::vector<std::string> not_done;
  const auto* brokers = answer.if_contains("brokers");
  if (brokers != nullptr && brokers->is_array()) {
    for (const auto& element : brokers->get_array()) {
      if (!element.is_object()) continue;
      const auto& broker = element.get_object();
      const auto* replaced = broker.if_contains("replaced");
      if (replaced != nullptr && replaced->is_bool() && replaced->get_bool()) {
        done.push_back(text_of(broker, "id"));
      } else {
        not_done.push_back(
            concat("broker ", text_of(broker, "id"), ": ", text_of(broker, "reason")));
      }
    }
  }
  ReplacedWhere where;
  if (!not_done.empty()) {
    where.everywhere = Error{Errc::conflict, "not replaced everywhere: " + joined(not_done, "; ")};
  }
  if (done.size() + not_done.size() > 1) {
    where.at = concat(done.size() == 1 ? " at broker " : " at brokers ", joined(done));
  }
  return where;
}

std::string text_of(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return "?";
  if (value->is_string()) return std::string(value->get_string());
  return boost::json::serialize(*value);
}

std::string path_segment(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string segment;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (plain) {
      segment += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    segment += '%';
    segment += digits[byte >> 4];
    segment += digits[byte & 0x0f];
  }
  return segment;
}

Task<boost::json::object> ask_admin(Network& network, std::string address, std::string method,
                                    std::string path, std::string body) {
  auto where = parse_address(address);
  if (!where) co_return Error{Errc::invalid_argument, "--admin: " + where.error().detail};
  auto request = method + ' ' + path + " HTTP/1.1\r\nHost: " + address +
                 "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  if (!body.empty()) request += "Content-Type: application/json\r\n";
  request += "\r\n" + body;
  auto& shard = co_await this_shard();
  const auto began = shard.now();
  const auto limit = method == "GET" ? answer_within : change_within;
  auto asking = with_deadline(exchange(network, *std::move(where), std::move(request)), limit);
  const auto answered = co_await std::move(asking);
  if (!answered) co_return no_answer(address, answered.error(), limit, shard.now() - began);
  const auto& answer = *answered;

  constexpr std::string_view protocol = "HTTP/1.1 ";
  const auto body_at = answer.find(head_end);
  if (!answer.starts_with(protocol) || body_at == std::string::npos) co_return malformed(address);
  unsigned status = 0;
  const auto* digits = answer.data() + protocol.size();
  std::from_chars(digits, answer.data() + body_at, status);
  boost::system::error_code failed;
  auto value =
      boost::json::parse(std::string_view(answer).substr(body_at + head_end.size()), failed);
  if (failed || !value.is_object()) co_return malformed(address);
  auto& object = value.get_object();
  constexpr unsigned first_refusal = 400;
  if (status < first_refusal) co_return std::move(object);
  const auto* message = object.if_contains("message");
  if (message == nullptr || !message->is_string()) co_return malformed(address);
  co_return Error{code_of(status), std::string(message->get_string())};
}

}  // namespace millrace::kernel::cli
