// Who may use /admin. There are no users yet: whoever reaches the listener, which is why it is on
// the loopback interface; but not a page in somebody's browser, which reaches that too.
#pragma once

#include <optional>

#include "message.h"
#include "settings.h"

namespace millrace::http_transport {

/// Why a request for a path below /admin is refused; none when it is not:
///  - its Host must be an address, localhost or one of `hosts`: any other name may be a page's own,
///    made to lead here (DNS rebinding);
///  - it must not come from a page of another origin;
///  - a body must be declared as JSON, which no page sends across origins unasked.
std::optional<HttpResponse> refuse_access(const HttpRequest& request, const Settings& settings);

}  // namespace millrace::http_transport
