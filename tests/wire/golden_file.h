// What the tools in this folder share: lines of (gzipped) files, bytes as hex and base64.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/buffer.h>

namespace millrace::wire {

/// Calls `use` with each line of a file, gzipped or plain; the last one may lack its line feed.
/// Errc::io names the file.
Result<> for_each_line(const std::string& path, const std::function<void(std::string_view)>& use);

/// All bytes of a file, gzipped or plain.
Result<Buffer> read_file(const std::string& path);

/// Errc::invalid_argument for an odd length or another character than a hex digit.
Result<Buffer> parse_hex(std::string_view hex);

/// As Kafka's JSON form has bytes. `from_base64` is for texts that to_base64 wrote.
std::string to_base64(Bytes bytes);
Buffer from_base64(std::string_view text);

}  // namespace millrace::wire
