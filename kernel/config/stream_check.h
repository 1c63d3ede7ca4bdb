// What a stream's declaration must say to make sense, wherever it was written.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <millrace/streams.h>

namespace millrace::kernel {

/// `key` is the member as TOML has it ("dead-letter"), or "operator" or "name" of a step.
struct StreamFault {
  std::string key;
  std::optional<std::size_t> step_at;
  std::string message;
};

/// Everything that is wrong but the steps' own options. Gives steps the names that they have by
/// default.
std::vector<StreamFault> check_stream(StreamSpec& spec);

/// Why `topic` may not be written to by this stream: it is no name of one, or a source, or it keeps
/// state of the broker.
std::optional<std::string> check_output(const StreamSpec& spec, const std::string& topic);

/// Why users cannot have a topic of this name: it is none, or the broker keeps state under it.
std::optional<std::string> why_no_topic(const std::string& name);

}  // namespace millrace::kernel
