#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/json/array.hpp>

#include "../broker_metrics.h"
#include "../json.h"
#include "handlers.h"

namespace millrace::http_transport {
namespace {

/// A broker that does not answer itself in time is not well.
constexpr Duration look_max = std::chrono::seconds(5);
/// So many partitions are named; more are counted.
constexpr std::size_t named_max = 100;

boost::json::object named(const std::vector<std::string>& partitions) {
  const auto end =
      partitions.begin() + static_cast<std::ptrdiff_t>(std::min(partitions.size(), named_max));
  return {{"count", partitions.size()},
          {"partitions", boost::json::array(partitions.begin(), end)}};
}

HttpResponse unwell(std::string_view status) { return json_response({{"status", status}}, 503); }

}  // namespace

Task<HttpResponse> handle_health(Exchange& exchange) {
  if (const auto* operations = exchange.services.operations) {
    if (operations->state() == Operations::State::starting) co_return unwell("starting");
    if (operations->state() == Operations::State::stopping) co_return unwell("stopping");
  }
  auto looking = with_deadline(find_trouble(exchange), look_max);
  const auto trouble = co_await std::move(looking);
  if (!trouble && trouble.error().code == Errc::timed_out) co_return unwell("slow");
  if (!trouble) co_return unwell("stopping");
  if (trouble->none()) co_return json_response({{"status", "ok"}});
  co_return json_response({{"status", "degraded"},
                           {"offline", named(trouble->offline)},
                           {"failing", named(trouble->failing)}},
                          503);
}

}  // namespace millrace::http_transport
