#include "answer_queue.h"

#include <utility>
#include <variant>

namespace millrace::kafka_transport {
namespace {

std::uint64_t memory_bytes_of(const Payload& answer) {
  std::uint64_t bytes = 0;
  for (const auto& part : answer.parts()) {
    if (const auto* buffer = std::get_if<Buffer>(&part)) bytes += buffer->size();
  }
  return bytes;
}

}  // namespace

void AnswerQueue::put(Ticket ticket, Payload answer) {
  MR_ASSERT(ticket >= first_);
  if (ticket - first_ >= slots_.size()) return;
  auto& slot = slots_[ticket - first_];
  MR_ASSERT(!slot);
  const auto memory_bytes = memory_bytes_of(answer);
  memory_bytes_ += memory_bytes;
  slot.emplace(std::move(answer), memory_bytes);
}

void AnswerQueue::cut(Ticket ticket) noexcept {
  for (; first_ + slots_.size() > ticket && !slots_.empty(); slots_.pop_back()) {
    if (slots_.back()) memory_bytes_ -= slots_.back()->memory_bytes;
  }
}

AnswerQueue::Ready AnswerQueue::take_ready(std::uint64_t memory_bytes_max) {
  Ready ready;
  while (front_is_ready()) {
    auto& front = *slots_.front();
    ready.memory_bytes += front.memory_bytes;
    if (ready.answers.empty()) {
      ready.answers = std::move(front.payload);
    } else {
      ready.answers.add(std::move(front.payload));
    }
    slots_.pop_front();
    ++first_;
    if (ready.memory_bytes >= memory_bytes_max) break;
  }
  memory_bytes_ -= ready.memory_bytes;
  return ready;
}

}  // namespace millrace::kafka_transport
