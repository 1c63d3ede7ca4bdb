// /admin/aggregates: listed; replaced by another version; what is said to one as text, and what it
// answers.
#include <optional>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <millrace/aggregate_admin.h>
#include <millrace/aggregates.h>
#include <millrace/replacements.h>

#include "../json.h"
#include "../members.h"
#include "handlers.h"
#include "replaced_json.h"

namespace millrace::http_transport {
namespace {

namespace json = boost::json;

HttpResponse no_aggregates() {
  return error_response(404, "not_loaded", "this broker runs no aggregates");
}

/// Whose clients of the protocol are told that nobody coordinates it, and to ask again.
Task<std::optional<HttpResponse>> not_there(Broker& broker, std::string_view name) {
  auto* aggregates = broker.service<AggregateAdmin>();
  if (aggregates == nullptr) co_return std::optional<HttpResponse>();
  auto asking = aggregates->list();
  MR_CO_TRY(const auto facts, co_await std::move(asking));
  std::string known;
  for (const auto& fact : facts) {
    if (fact.name == name) co_return std::optional<HttpResponse>();
    known += (known.empty() ? "" : ", ") + fact.name;
  }
  co_return error_response(404, "not_found",
                           "there is no aggregate " + std::string(name) + "; there are " +
                               (known.empty() ? std::string("none") : known));
}

/// Answers that could be of an aggregate that does not exist.
bool may_be_nobody(const AggregateAnswer& answer) {
  return answer.error == ErrorCode::coordinator_not_available;
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

/// `{"file": "/opt/bank.so"}`; the file is one of each broker's machine.
Result<std::string> read_file_name(std::string_view body) {
  MR_TRY(auto members, Members::read(body));
  MR_TRY(auto file, members.text("file"));
  MR_CHECK(members.end());
  if (file) return *std::move(file);
  return Error{Errc::invalid_argument,
               "file: expected the path of a plugin on each broker's machine, found nothing"};
}

/// An error of the broker's end is the caller's.
Result<HttpResponse> not_replaced(const Error& error) {
  switch (error.code) {
    case Errc::closed:
    case Errc::cancelled: return error;
    case Errc::not_found: return error_response(404, "not_found", error.detail);
    case Errc::conflict: return error_response(409, "conflict", error.detail);
    case Errc::invalid_argument: return error_response(400, "invalid_aggregate", error.detail);
    default: return error_response(500, "failed", error.detail);
  }
}

json::object shown(const AggregateFact& fact) {
  return {{"name", fact.name},
          {"topic", fact.topic},
          {"plugin", fact.plugin},
          {"version", fact.version},
          {"path", fact.path},
          {"starts_from", fact.starts_from},
          {"partitions", fact.partitions},
          {"serving", fact.serving}};
}

}  // namespace

Task<HttpResponse> handle_list_aggregates(Exchange& exchange) {
  auto* aggregates = exchange.services.broker.service<AggregateAdmin>();
  if (aggregates == nullptr) co_return no_aggregates();
  auto asking = aggregates->list();
  MR_CO_TRY(const auto facts, co_await std::move(asking));
  json::array all;
  for (const auto& fact : facts) all.emplace_back(shown(fact));
  co_return json_response({{"aggregates", std::move(all)}});
}

Task<HttpResponse> handle_replace_aggregate(Exchange& exchange) {
  auto* aggregates = exchange.services.broker.service<AggregateAdmin>();
  auto* replacements = exchange.services.broker.service<Replacements>();
  if (aggregates == nullptr || replacements == nullptr) co_return no_aggregates();
  auto file = read_file_name(exchange.request.body);
  if (!file) co_return bad_body(file.error());
  const auto& name = exchange.arguments[0];
  auto replacing = replacements->replace_aggregate(name, *file);
  const auto replaced = co_await std::move(replacing);
  if (!replaced) co_return not_replaced(replaced.error());
  auto asking = aggregates->list();
  MR_CO_TRY(const auto facts, co_await std::move(asking));
  json::object answer{{"name", name}};
  for (const auto& fact : facts) {
    if (fact.name == name) answer = shown(fact);
  }
  answer["brokers"] = replaced_json(*replaced);
  co_return json_response(std::move(answer));
}

Task<HttpResponse> handle_command(Exchange& exchange) {
  auto* aggregates = exchange.services.broker.service<Aggregates>();
  if (aggregates == nullptr) co_return no_aggregates();
  auto command = read_command(exchange.request.body);
  if (!command) co_return bad_body(command.error());
  const auto& name = exchange.arguments[0];
  const auto& key = exchange.arguments[1];
  auto call = aggregates->command(name, key, *std::move(command));
  MR_CO_TRY(const auto answer, co_await call.done);
  if (may_be_nobody(answer)) {
    auto looking = not_there(exchange.services.broker, name);
    MR_CO_TRY(auto nobody, co_await std::move(looking));
    if (nobody) co_return *std::move(nobody);
  }
  co_return shown(answer);
}

Task<HttpResponse> handle_query(Exchange& exchange) {
  auto* aggregates = exchange.services.broker.service<Aggregates>();
  if (aggregates == nullptr) co_return no_aggregates();
  auto question = std::make_unique<BytesMessage>(Buffer());
  auto asking =
      aggregates->query(exchange.arguments[0], exchange.arguments[1], std::move(question));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (may_be_nobody(answer)) {
    auto looking = not_there(exchange.services.broker, exchange.arguments[0]);
    MR_CO_TRY(auto nobody, co_await std::move(looking));
    if (nobody) co_return *std::move(nobody);
  }
  co_return shown(answer);
}

}  // namespace millrace::http_transport
