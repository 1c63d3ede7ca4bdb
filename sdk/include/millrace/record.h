// Records, as views into the bytes of a batch.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/types.h>

namespace millrace {

struct HeaderView {
  std::string_view key;
  std::optional<Bytes> value;
};

/// One record. The views live as long as the bytes they were parsed from.
struct RecordView {
  Offset offset;
  Timestamp timestamp;
  std::optional<Bytes> key;
  std::optional<Bytes> value;  ///< none: a tombstone
  std::vector<HeaderView> headers;
};

}  // namespace millrace
