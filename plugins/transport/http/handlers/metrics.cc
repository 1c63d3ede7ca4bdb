#include <algorithm>
#include <iterator>
#include <utility>

#include "../broker_metrics.h"
#include "../exposition.h"
#include "../process_metrics.h"
#include "handlers.h"

namespace millrace::http_transport {
namespace {

void add(std::vector<MetricFamily>& families, std::vector<MetricFamily> more) {
  std::ranges::move(more, std::back_inserter(families));
}

/// Off the shard: /proc and many series take their time.  [a worker]
Result<std::string> render(Environment& environment, std::vector<MetricFamily> families) {
  add(families, process_metrics(environment.files()));
  std::ranges::sort(families, {}, &MetricFamily::name);
  return expose(families);
}

}  // namespace

Task<HttpResponse> handle_metrics(Exchange& exchange) {
  const auto& services = exchange.services;
  auto families = services.metrics.read();
  MR_CO_TRY(auto memory, co_await memory_metrics(services));
  add(families, std::move(memory));
  MR_CO_TRY(auto logs, co_await log_metrics(exchange));
  add(families, std::move(logs));
  auto work = [environment = &services.environment, families = std::move(families)]() mutable {
    return render(*environment, std::move(families));
  };
  auto rendering = on_worker(services.environment.workers(), std::move(work));
  MR_CO_TRY(auto text, co_await std::move(rendering));
  co_return HttpResponse{.body = std::move(text), .content_type = exposition_content_type};
}

}  // namespace millrace::http_transport
