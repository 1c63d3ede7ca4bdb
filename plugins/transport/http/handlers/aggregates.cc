// /admin/aggregates/NAME/KEY: what is said to an aggregate as text, and what it answers.
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <millrace/aggregates.h>

#include "../json.h"
#include "../members.h"
#include "handlers.h"

namespace millrace::http_transport {
namespace {

namespace json = boost::json;

HttpResponse no_aggregates() {
  return error_response(404, "not_loaded", "this broker runs no aggregates");
}

Result<std::unique_ptr<BytesMessage>> read_command(std::string_view body) {
  MR_TRY(auto members, Members::read(body));
  MR_TRY(const auto text, members.text("command"));
  MR_TRY(const auto headers, members.object("headers"));
  MR_CHECK(members.end());
  if (!text) return Error{Errc::invalid_argument, "command: expected a text, found nothing"};
  auto command = std::make_unique<BytesMessage>(Buffer::copy_of(*text));
  if (!headers) return command;
  for (const auto& [name, value] : *headers) {
    MR_TRY(const auto header, setting_text(std::string_view(name), value));
    command->headers.emplace_back(std::string_view(name), Buffer::copy_of(header.value_or("")));
  }
  return command;
}

HttpResponse shown(const AggregateAnswer& answer) {
  if (answer.error != ErrorCode::none) return error_response(answer.error, answer.detail);
  const auto* message = dynamic_cast<const BytesMessage*>(answer.message.get());
  if (message == nullptr) {
    return error_response(409, "no_text", "its answers are for its own service, not for people");
  }
  json::object headers;
  for (const auto& [name, value] : message->headers) headers[name] = value.text();
  return json_response({{"answer", message->bytes.text()}, {"headers", std::move(headers)}});
}

}  // namespace

Task<HttpResponse> handle_command(Exchange& exchange) {
  auto* aggregates = exchange.services.broker.service<Aggregates>();
  if (aggregates == nullptr) co_return no_aggregates();
  auto command = read_command(exchange.request.body);
  if (!command) co_return bad_body(command.error());
  const auto& name = exchange.arguments[0];
  const auto& key = exchange.arguments[1];
  auto call = aggregates->command(name, key, *std::move(command));
  MR_CO_TRY(const auto answer, co_await call.done);
  co_return shown(answer);
}

Task<HttpResponse> handle_query(Exchange& exchange) {
  auto* aggregates = exchange.services.broker.service<Aggregates>();
  if (aggregates == nullptr) co_return no_aggregates();
  auto question = std::make_unique<BytesMessage>(Buffer());
  auto asking =
      aggregates->query(exchange.arguments[0], exchange.arguments[1], std::move(question));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  co_return shown(answer);
}

}  // namespace millrace::http_transport
