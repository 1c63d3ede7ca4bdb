// A segment that a crash, a bad disk or a stranger left: it opens, what is read is whole batches in
// order, and the next append continues it.
#include "log_folder.h"

using namespace millrace;

namespace {

void check_entries(Bytes bytes, Offset end) {
  while (!bytes.empty()) {
    const auto entry = fuzz::need(read_entry_head(bytes), "a read holds whole entries");
    fuzz::require(entry.offset < end, "nothing lies behind the end");
    bytes = bytes.subspan(entry.total_bytes);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::LogFolder folder;
  folder.put("00000000000000000000.log", fuzz::Input(data, size).rest());
  if (!folder.open()) return 0;
  const auto bounds = folder.log().bounds();
  fuzz::require(bounds.start <= bounds.end, "a log does not end before it starts");
  const auto read = folder.read(bounds.start);
  if (read) check_entries(*read, bounds.end);

  const auto batch = millrace::testing::append_batch(folder.log(), 1);
  fuzz::require(
      fuzz::need(folder.read(bounds.end), "what was appended is read").text() == batch.text(),
      "as it was written");
  folder.close();
  fuzz::require(folder.open(), "it opens again");
  fuzz::require(folder.log().bounds().end == bounds.end + 1, "and ends where it ended");
  folder.close();
  return 0;
}
