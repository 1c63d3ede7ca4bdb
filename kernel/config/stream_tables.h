// [stream.NAME] and its steps.
//
//   [stream.clean]
//   sources = ["orders"]
//   sink = "orders.clean"
//   on-error = "dead-letter"
//   dead-letter = "orders.bad"
//   [[stream.clean.steps]]
//   operator = "filter"
//   header = "type"          # what the operator declares
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <millrace/options.h>

#include "kernel/config/config.h"
#include "kernel/config/document.h"

namespace millrace::kernel {

/// As Checker::read.
using ReadTable = std::function<std::map<std::string, OptionValue, std::less<>>(
    const ConfigTable& table, const std::string& name, const MillraceOption* declared,
    const std::vector<std::string>& others, const ConfigPlace& place)>;

/// Each step that names an operator. What is wrong is passed over, for check_streams to report.
std::vector<StepRequest> requested_steps(const ConfigTable& streams);

/// Every stream; what is wrong is added to `errors`.
std::vector<Settings::Stream> check_streams(const ConfigTable& streams,
                                            const std::vector<DeclaredStep>& steps,
                                            const ReadTable& read, ConfigErrors& errors);

}  // namespace millrace::kernel
