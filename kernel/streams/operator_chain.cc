#include "kernel/streams/operator_chain.h"

#include <algorithm>
#include <exception>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

// Two readings of the clock for so many records: what they cost does not show.
constexpr std::uint64_t sample_every = 32;

// What an operator may say about itself, in logs and dead letters.
constexpr std::size_t detail_bytes_max = 1024;

// Longer is a mistake, and sums shall not overflow.
constexpr Duration pause_max = std::chrono::hours(24);

// A batch holds less than 2 GiB.
constexpr std::size_t record_bytes_max = 1UL << 30;

Error shortened(Error error) {
  if (error.detail.size() > detail_bytes_max) error.detail.resize(detail_bytes_max);
  return error;
}

bool is_garbage(Bytes bytes) noexcept { return bytes.data() == nullptr && !bytes.empty(); }

// What can be told of views that an operator made up.
std::optional<std::string> garbage_in(const OutputRecord& record) {
  std::size_t bytes = 0;
  const auto add = [&bytes](std::size_t more) {
    bytes = more > record_bytes_max ? record_bytes_max + 1
                                    : std::min(bytes + more, record_bytes_max + 1);
  };
  if ((record.key && is_garbage(*record.key)) || (record.value && is_garbage(*record.value))) {
    return "emitted a key or value that points nowhere";
  }
  if (record.headers.data() == nullptr && !record.headers.empty()) {
    return "emitted headers that point nowhere";
  }
  if (record.key) add(record.key->size());
  if (record.value) add(record.value->size());
  if (bytes <= record_bytes_max) {
    for (const auto& header : record.headers) {
      if (is_garbage(as_bytes(header.key)) || (header.value && is_garbage(*header.value))) {
        return "emitted a header that points nowhere";
      }
      add(header.key.size());
      if (header.value) add(header.value->size());
      if (bytes > record_bytes_max) break;
    }
  }
  if (bytes > record_bytes_max) return "emitted a record of more than 1 GiB";
  return std::nullopt;
}

}  // namespace

class OperatorChain::StepEmitter final : public Emitter {
 public:
  StepEmitter(OperatorChain& chain, std::size_t step_at, KeyedStore& state, StepTimers& timers)
      : chain_(chain), step_at_(step_at), state_(state), timers_(timers) {}

  void emit(const OutputRecord& record) override { chain_.emit(step_at_, record); }
  KeyedState& state() noexcept override { return state_; }
  void set_timer(Bytes name, Timestamp at) override { timers_.set(name, at); }
  void cancel_timer(Bytes name) override { timers_.cancel(name); }
  Timestamp stream_time() const noexcept override { return chain_.stream_time_; }
  const TopicPartition& source() const noexcept override { return *chain_.source_; }
  void pause(Duration by) override {
    if (by > Duration::zero()) chain_.pause_ = std::min(chain_.pause_ + by, pause_max);
  }

 private:
  OperatorChain& chain_;
  std::size_t step_at_;
  KeyedStore& state_;
  StepTimers& timers_;
};

struct OperatorChain::Slot {
  Slot(Step step, StreamMemory& memory)
      : name(std::move(step.name)), made(std::move(step.made)), state(memory), timers(memory) {}

  std::string name;
  MadeOperator made;
  KeyedStore state;
  StepTimers timers;
  StepCounts counts;
  std::unique_ptr<StepEmitter> emitter;
  RecordView input;  // made of what the step before has emitted
};

OperatorChain::OperatorChain(std::vector<Step> steps, std::string sink, StreamMemory& memory,
                             const Clock& clock, StreamOutputs& outputs)
    : sink_(std::move(sink)), memory_(memory), clock_(clock), outputs_(outputs) {
  for (auto& step : steps) {
    auto& slot = *steps_.emplace_back(std::make_unique<Slot>(std::move(step), memory));
    slot.emitter = std::make_unique<StepEmitter>(*this, steps_.size() - 1, slot.state, slot.timers);
  }
}

OperatorChain::~OperatorChain() = default;

void OperatorChain::advance(Timestamp time) noexcept {
  stream_time_ = std::max(stream_time_, time);
}

const std::string& OperatorChain::name_of(std::size_t step_at) const noexcept {
  return steps_[step_at]->name;
}
KeyedStore& OperatorChain::state_of(std::size_t step_at) noexcept { return steps_[step_at]->state; }
StepTimers& OperatorChain::timers_of(std::size_t step_at) noexcept {
  return steps_[step_at]->timers;
}

std::optional<std::size_t> OperatorChain::find(std::string_view step) const noexcept {
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    if (steps_[at]->name == step) return at;
  }
  return std::nullopt;
}

std::uint64_t OperatorChain::state_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& slot : steps_) bytes += slot->state.bytes() + slot->timers.times().bytes();
  return bytes;
}

std::size_t OperatorChain::changes() const noexcept {
  std::size_t changes = 0;
  for (const auto& slot : steps_) changes += slot->state.changes() + slot->timers.times().changes();
  return changes;
}

std::vector<StepCounts> OperatorChain::take_counts() {
  std::vector<StepCounts> counts;
  for (const auto& slot : steps_) counts.push_back(std::exchange(slot->counts, {}));
  return counts;
}

void OperatorChain::count_error(std::size_t step_at) noexcept { ++steps_[step_at]->counts.errors; }

MadeOperator OperatorChain::replace(std::size_t step_at, MadeOperator made) {
  return std::exchange(steps_[step_at]->made, std::move(made));
}

void OperatorChain::fail(ChainFailure failure) noexcept {
  const bool worse = failure.kind == ChainFailure::Kind::memory && failure_ &&
                     failure_->kind != ChainFailure::Kind::memory;
  if (!failure_ || worse) failure_ = std::move(failure);
}

void OperatorChain::fail_memory(std::size_t step_at) {
  fail({ChainFailure::Kind::memory,
        step_at,
        {Errc::too_large, concat("state and pending output exceed the stream's memory of ",
                                 memory_.bytes_max(), " bytes; give it more, or keep less")},
        {}});
}

// Nothing that an operator throws passes this line.
template <class F>
void OperatorChain::guarded(std::size_t step_at, F body) noexcept {
  try {
    try {
      Result<> done = body();
      if (!done) {
        fail({ChainFailure::Kind::record, step_at, shortened(std::move(done).error()), {}});
      }
    } catch (const StreamMemoryExceeded&) {
      fail_memory(step_at);
    } catch (const std::exception& thrown) {
      fail({ChainFailure::Kind::record,
            step_at,
            shortened({Errc::internal, concat("it threw: ", thrown.what())}),
            {}});
    } catch (...) {
      fail({ChainFailure::Kind::record,
            step_at,
            {Errc::internal, "it threw something that is not a std::exception"},
            {}});
    }
  } catch (...) {
    fail({ChainFailure::Kind::record, step_at, {Errc::internal, {}}, {}});  // no memory for more
  }
}

void OperatorChain::call(std::size_t step_at, const RecordView& record) {
  auto& slot = *steps_[step_at];
  ++slot.counts.records_in;
  running_step_.store(step_at, std::memory_order_relaxed);
  const auto body = [&] { return slot.made.object->process(record, *slot.emitter); };
  if (!sampled_) return guarded(step_at, body);
  const auto outside = std::exchange(inner_, Duration{});
  const auto begin = clock_.now();
  guarded(step_at, body);
  const auto took = clock_.now() - begin;
  slot.counts.nanoseconds += static_cast<std::uint64_t>((took - inner_).count()) * sample_every;
  inner_ = outside + took;
}

void OperatorChain::call_timer(std::size_t step_at, const std::string& name) {
  auto& slot = *steps_[step_at];
  running_step_.store(step_at, std::memory_order_relaxed);
  guarded(step_at, [&] { return slot.made.object->timer(as_bytes(name), *slot.emitter); });
}

void OperatorChain::emit(std::size_t step_at, const OutputRecord& emitted) {
  if (failure_) return;  // nothing of the record counts any more
  if (auto garbage = garbage_in(emitted)) {
    return fail({ChainFailure::Kind::record, step_at, {Errc::invalid_argument, *garbage}, {}});
  }
  auto record = emitted;
  if (record.timestamp == Timestamp{}) record.timestamp = record_time_;
  ++steps_[step_at]->counts.records_out;
  if (!record.topic.empty()) return write(step_at, record.topic, record);
  if (step_at + 1 == steps_.size()) {
    if (!sink_.empty()) write(step_at, sink_, record);
    return;
  }
  auto& input = steps_[step_at + 1]->input;
  input.offset = record_offset_;
  input.timestamp = record.timestamp;
  input.key = record.key;
  input.value = record.value;
  input.headers.assign(record.headers.begin(), record.headers.end());
  const auto outer_time = std::exchange(record_time_, record.timestamp);
  call(step_at + 1, input);
  running_step_.store(step_at, std::memory_order_relaxed);
  record_time_ = outer_time;
}

void OperatorChain::write(std::size_t step_at, std::string_view topic, const OutputRecord& record) {
  auto* known = outputs_.find(topic);
  if (known == nullptr) {
    return fail({ChainFailure::Kind::unknown_topic, step_at, {}, std::string(topic)});
  }
  if (!StreamOutputs::exists(*known)) {
    return fail({ChainFailure::Kind::record,
                 step_at,
                 {Errc::not_found, concat("there is no topic ", topic, " to write to")},
                 {}});
  }
  outputs_.add(*known, source_->partition, record);
}

// All of it stays, or goes.
std::optional<ChainFailure> OperatorChain::finish() {
  // Also where an operator has caught what was thrown through it.
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    if (steps_[at]->state.refused() || steps_[at]->timers.times().refused()) fail_memory(at);
  }
  if (outputs_.refused()) fail_memory(steps_.size() - 1);
  auto failure = std::exchange(failure_, std::nullopt);
  for (const auto& slot : steps_) {
    if (failure) {
      slot->state.undo();
      slot->timers.undo();
    } else {
      slot->state.keep();
      slot->timers.keep();
    }
  }
  if (failure) {
    outputs_.undo();
    if (failure->kind == ChainFailure::Kind::record) ++steps_[failure->step_at]->counts.errors;
  } else {
    outputs_.keep();
  }
  return failure;
}

std::optional<ChainFailure> OperatorChain::process(const TopicPartition& source,
                                                   const RecordView& record) {
  source_ = &source;
  record_offset_ = record.offset;
  running_record_.store(record.offset.value, std::memory_order_relaxed);
  record_time_ = record.timestamp;
  sampled_ = records_++ % sample_every == 0;
  call(0, record);
  sampled_ = false;
  return finish();
}

std::optional<ChainFailure> OperatorChain::emit_past(const TopicPartition& source,
                                                     const OutputRecord& record) {
  source_ = &source;
  guarded(0, [&]() -> Result<> {
    write(0, record.topic, record);
    return {};
  });
  return finish();
}

std::optional<ChainFailure> OperatorChain::fire_timers(const TopicPartition& source,
                                                       bool drop_failed) {
  source_ = &source;
  record_offset_ = {};
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    auto& timers = steps_[at]->timers;
    // Those that a timer sets for a time that is reached already are for the next record.
    for (const auto& [time, name] : timers.due(stream_time_)) {
      if (!timers.take(name, time)) continue;  // moved or cancelled meanwhile
      record_time_ = {time};
      call_timer(at, name);
      auto failure = finish();
      if (!failure) continue;
      if (drop_failed && failure->kind == ChainFailure::Kind::record) {
        timers.cancel(as_bytes(name));
        timers.keep();
      }
      return failure;
    }
  }
  return std::nullopt;
}

}  // namespace millrace::kernel
