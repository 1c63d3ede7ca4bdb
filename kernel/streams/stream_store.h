// What coordination remembers of streams, so that a restart knows it: those declared over the admin
// API, and which were stopped.
//
//   /millrace/streams/NAME           {"version":1,"spec":{...}}
//   /millrace/stopped_streams/NAME   {"version":1}
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/coordination.h>
#include <millrace/streams.h>

namespace millrace::kernel {

struct StoredStreams {
  std::vector<StreamSpec> specs;
  std::set<std::string, std::less<>> stopped;
};

std::string encode_stream(const StreamSpec& spec);
Result<StreamSpec> decode_stream(std::string_view name, std::string_view text);

/// [control thread]
class StreamStore {
 public:
  static constexpr std::string_view specs_prefix = "/millrace/streams";
  static constexpr std::string_view stopped_prefix = "/millrace/stopped_streams";

  explicit StreamStore(Coordination& coordination) : coordination_(coordination) {}

  Task<StoredStreams> read();
  /// Errc::conflict when there is one of its name and `replace` is false.
  Task<> put(StreamSpec spec, bool replace);
  Task<> remove(std::string name);
  Task<> set_stopped(std::string name, bool stopped);

 private:
  Task<> forget(std::string key);

  Coordination& coordination_;
};

}  // namespace millrace::kernel
