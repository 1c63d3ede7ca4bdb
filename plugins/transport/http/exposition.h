// Metrics as text: the exposition format of Prometheus, version 0.0.4.
#pragma once

#include <string>
#include <vector>

#include <millrace/observe.h>

namespace millrace::http_transport {

inline constexpr const char* exposition_content_type = "text/plain; version=0.0.4; charset=utf-8";

/// Families in the order given, each with its help and type. Those without a series are left out.
std::string expose(const std::vector<MetricFamily>& families);

}  // namespace millrace::http_transport
