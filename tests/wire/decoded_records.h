// The records of Kafka's internal topics in clear, in the form of `*.decoded.jsonl`.
#pragma once

#include <string_view>

#include <boost/json.hpp>

#include <millrace/buffer.h>

namespace millrace::wire {

/// `lines` as from describe_entries(). Control records, and those that only say that nothing
/// happened, have no line. Errc::unsupported for a topic that is not one of Kafka's.
Result<boost::json::array> decode_records(std::string_view topic, const boost::json::array& lines);

}  // namespace millrace::wire
