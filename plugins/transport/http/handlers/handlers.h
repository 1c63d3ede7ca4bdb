// One function per route. What a request asks wrongly is in the answer; an error means that the
// broker is stopping.  [connection's shard]
#pragma once

#include "../exchange.h"

namespace millrace::http_transport {

Task<HttpResponse> handle_health(Exchange& exchange);
Task<HttpResponse> handle_metrics(Exchange& exchange);

}  // namespace millrace::http_transport
