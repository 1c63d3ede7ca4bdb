#include "settings.h"

#include <chrono>
#include <string>
#include <string_view>

namespace millrace::kafka_transport {
namespace {

Result<Address> address_option(const Options& options, std::string_view name) {
  auto address = parse_address(options.text(name));
  if (address) return address;
  return Error{Errc::invalid_argument, std::string(name) + ": " + address.error().detail};
}

bool is_wildcard(std::string_view host) { return host == "0.0.0.0" || host == "::" || host == "*"; }

}  // namespace

Result<Settings> read_settings(const Options& options) {
  Settings settings;
  MR_TRY(settings.listen, address_option(options, "listen"));
  if (!options.text("advertise").empty()) {
    MR_TRY(settings.advertise, address_option(options, "advertise"));
  } else {
    settings.advertise = settings.listen;
  }
  if (is_wildcard(settings.advertise.host)) {
    return Error{Errc::invalid_argument,
                 "clients cannot connect to " + to_string(settings.advertise) +
                     ", which means every interface; set advertise to the HOST:PORT by which they "
                     "reach this broker"};
  }
  const auto idle_ms = options.integer("connections.max.idle.ms");
  settings.idle_max = std::chrono::milliseconds(idle_ms > 0 ? idle_ms : 0);
  settings.frame_bytes_max = static_cast<std::int32_t>(options.integer("socket.request.max.bytes"));
  settings.connections_max = static_cast<std::size_t>(options.integer("max.connections"));
  settings.requests_in_flight_max =
      static_cast<std::size_t>(options.integer("requests.in.flight.max"));
  settings.answer_bytes_pending_max =
      static_cast<std::size_t>(options.integer("answers.pending.max.bytes"));
  return settings;
}

}  // namespace millrace::kafka_transport
