#include "answer_queue.h"

#include <utility>

namespace millrace::kafka_transport {

void AnswerQueue::put(Ticket ticket, Payload answer) {
  MR_ASSERT(ticket >= first_);
  if (ticket - first_ >= slots_.size()) return;
  auto& slot = slots_[ticket - first_];
  MR_ASSERT(!slot);
  bytes_ += answer.size();
  slot.emplace(std::move(answer));
}

void AnswerQueue::cut(Ticket ticket) noexcept {
  for (; first_ + slots_.size() > ticket && !slots_.empty(); slots_.pop_back()) {
    if (slots_.back()) bytes_ -= slots_.back()->size();
  }
}

Payload AnswerQueue::take_ready() {
  Payload ready;
  for (; front_is_ready(); slots_.pop_front(), ++first_) {
    bytes_ -= slots_.front()->size();
    ready.add(std::move(*slots_.front()));
  }
  return ready;
}

}  // namespace millrace::kafka_transport
