// Settings of a topic or a broker, as the handlers show them.
#pragma once

#include <boost/json/object.hpp>

#include <millrace/configs.h>

#include "../exchange.h"

namespace millrace::http_transport {

/// All settings of one resource; an error of its own is in the answer.
Task<ConfigsDescribed> read_configs(Exchange& exchange, ConfigResource resource);

/// `{"retention.ms": {"value": "604800000", "source": "default"}, …}`.
boost::json::object configs_json(const ConfigsDescribed& described);

}  // namespace millrace::http_transport
