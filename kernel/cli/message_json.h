// A message as a line of JSON: what `consume -o json` prints, and `produce --json` takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include <millrace/record.h>
#include <millrace/result.h>

namespace millrace::kernel::cli {

/// {"topic", "partition", "offset", "timestamp", "key", "value", "headers": [{"key", "value"}]}.
/// Bytes that are UTF-8 are a text, others {"hex": "00ff"}; what is not there is null.
boost::json::object object_of(std::string_view topic, std::int32_t partition,
                              const RecordView& record);

/// A message that is to be sent; it owns its bytes.
struct Message {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::optional<std::int32_t> partition;
  std::optional<Timestamp> timestamp;
};

/// Of such an object, whose members may all be left out. A topic and an offset are passed over:
/// they are where it came from. What is unknown is an error, or a slip would lose it.
Result<Message> message_of(std::string_view line);

}  // namespace millrace::kernel::cli
