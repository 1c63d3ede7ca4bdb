#include <millrace/payload.h>

#include <millrace/environment.h>

namespace millrace {

Result<Buffer> Payload::flatten() const {
  if (parts_.size() == 1) {
    if (const auto* only = std::get_if<Buffer>(&parts_.front())) return *only;
  }
  MutableBuffer whole(size_);
  for (const auto& part : parts_) {
    if (const auto* buffer = std::get_if<Buffer>(&part)) {
      whole.append(*buffer);
      continue;
    }
    const auto& range = std::get<FileRange>(part);
    MR_TRY(const auto bytes_read,
           range.file->read_at(range.offset, whole.space().first(range.size)));
    if (bytes_read != range.size) {
      return Error{Errc::corrupt, range.file->path() + ": " + std::to_string(range.size) +
                                      " bytes expected at byte " + std::to_string(range.offset) +
                                      ", " + std::to_string(bytes_read) + " found"};
    }
    whole.filled(bytes_read);
  }
  return std::move(whole).freeze();
}

}  // namespace millrace
