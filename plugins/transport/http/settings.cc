#include "settings.h"

#include <chrono>

namespace millrace::http_transport {

Result<Settings> read_settings(const Options& options) {
  auto listen = parse_address(options.text("listen"));
  if (!listen) return Error{Errc::invalid_argument, "listen: " + listen.error().detail};
  const auto count = [&options](std::string_view name) {
    return static_cast<std::size_t>(options.integer(name));
  };
  return Settings{
      .listen = *std::move(listen),
      .hosts = options.texts("hosts"),
      .connections_max = count("max.connections"),
      .idle_max = std::chrono::milliseconds(options.integer("connections.max.idle.ms")),
      .request_max = std::chrono::milliseconds(options.integer("request.timeout.ms")),
      .body_bytes_max = count("request.max.bytes"),
      .partition_series_max = count("metrics.partition.series.max"),
  };
}

}  // namespace millrace::http_transport
