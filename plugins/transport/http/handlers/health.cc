#include "../json.h"
#include "handlers.h"

namespace millrace::http_transport {
namespace {

std::string_view name_of(Operations::State state) {
  switch (state) {
    case Operations::State::starting: return "starting";
    case Operations::State::serving: return "ok";
    case Operations::State::stopping: break;
  }
  return "stopping";
}

}  // namespace

Task<HttpResponse> handle_health(Exchange& exchange) {
  auto state = Operations::State::serving;
  if (exchange.services.operations) state = exchange.services.operations->state();
  const unsigned status = state == Operations::State::serving ? 200 : 503;
  co_return json_response({{"status", name_of(state)}}, status);
}

}  // namespace millrace::http_transport
