// The bytes of the journal: its header, its entries, and what a damaged one means. README.md has
// the format and the reasons.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/result.h>

#include "tree.h"

namespace millrace::standalone {

/// Where the first entry begins.
inline constexpr std::uint64_t journal_header_bytes = 16;

/// Everything before byte `sealed_bytes` of the file is on stable storage.
std::string encode_header(std::uint64_t sealed_bytes);
std::string encode_entry(const std::vector<Change>& changes);

struct JournalScan {
  std::uint64_t bytes_good = 0;  ///< the header and the whole entries behind it; the rest was torn
  bool seal_damaged = false;     ///< what was sealed is not known; taken for nothing
};

/// Gives `each` the changes of every entry, in order. Errc::corrupt for bytes that no crash of ours
/// leaves behind, Errc::incompatible for a journal of a later version; it says where and what can
/// be done, without the path.
Result<JournalScan> scan_journal(Bytes content,
                                 const std::function<void(std::vector<Change>)>& each);

}  // namespace millrace::standalone
