// Where two texts of JSON part.
#pragma once

#include <string>

#include <boost/json.hpp>

namespace millrace::wire {

/// "" when equal, else where they differ and how: "topics[0].name (\"a\", not \"b\")".
std::string difference(const boost::json::value& ours, const boost::json::value& kafkas);

}  // namespace millrace::wire
