// JSON, token by token: strings as what they say, numbers as they were written, so that what is
// not touched comes out as it came in. The parser is Boost.JSON's.
#pragma once

#include <cstdint>
#include <string_view>

#include <millrace/buffer.h>
#include <millrace/result.h>

namespace millrace {

/// Arrays and objects within each other, at most.
inline constexpr std::size_t json_depth_max = 100;

/// What walk_json() calls, in the order of the text. Views are valid during the call.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void begin_object() = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
  virtual void key(std::string_view name) = 0;
  virtual void string(std::string_view text) = 0;
  /// A number, true, false or null, as it stands in the text.
  virtual void literal(std::string_view text) = 0;
};

/// Errc::corrupt: not one whole JSON text; it says where. What `events` was told before that is
/// worth nothing then.
Result<> walk_json(Bytes text, JsonEvents& events);

}  // namespace millrace
