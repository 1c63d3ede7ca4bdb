#include "answer_memory.h"

namespace millrace::kafka_transport {

void AnswerMemory::Share::set(std::uint64_t bytes) {
  of_.bytes_ += bytes;
  of_.bytes_ -= bytes_;
  bytes_ = bytes;
  const bool scarce = of_.scarce_ ? of_.bytes_ > of_.bytes_max_ / 2 : of_.bytes_ > of_.bytes_max_;
  if (scarce == of_.scarce_) return;
  of_.scarce_ = scarce;
  of_.changed_(scarce);
}

bool AnswerMemory::Share::has_room() const noexcept {
  if (bytes_ == 0) return !of_.exhausted();
  return !of_.scarce_ && bytes_ < of_.share_max();
}

}  // namespace millrace::kafka_transport
