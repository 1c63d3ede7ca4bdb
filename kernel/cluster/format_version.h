// What is stored says the version of its format. A later version of Millrace may store it in
// another: what is not known here is refused, never guessed at.
#pragma once

#include <cstdint>
#include <string_view>

#include <boost/json/fwd.hpp>

#include <millrace/result.h>

namespace millrace::kernel {

/// Errc::incompatible where `stored`, which `what` names, says that it is of a later version than
/// `known`. What says nothing is of the first.
Result<> check_format(std::string_view what, const boost::json::object& stored, std::int64_t known);

}  // namespace millrace::kernel
