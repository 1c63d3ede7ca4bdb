// A task's turn without a broker: steps made of functions, and input made of batches.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/streams/stream_turn.h"

namespace millrace::kernel {

/// Stands still unless a test moves it.
class TestClock final : public Clock {
 public:
  MonoTime now() const noexcept override { return now_ += step; }
  Timestamp wall() const noexcept override { return {1000}; }
  Duration step{};

 private:
  mutable MonoTime now_{};
};

struct TestStep final : Operator {
  using Process = std::function<Result<>(const RecordView&, Emitter&)>;
  using OnTimer = std::function<Result<>(Bytes, Emitter&)>;
  explicit TestStep(Process process_in, OnTimer timer_in = {})
      : on_record(std::move(process_in)), on_timer(std::move(timer_in)) {}

  Result<> process(const RecordView& input, Emitter& out) override { return on_record(input, out); }
  Result<> timer(Bytes name, Emitter& out) override { return on_timer(name, out); }

  Process on_record;
  OnTimer on_timer;
};

inline OutputRecord output(const RecordView& input) {
  return {input.key, input.value, input.timestamp, input.headers, {}};
}

/// Passes records on.
inline Result<> pass(const RecordView& input, Emitter& out) {
  out.emit(output(input));
  return {};
}

inline std::string text(std::optional<Bytes> bytes) {
  return bytes ? std::string(as_text(*bytes)) : "(none)";
}

/// Values of all records of a batch, in order.
inline std::vector<std::string> values_in(const Buffer& batch) {
  std::vector<std::string> values;
  const auto header = read_batch_header(batch).value();
  const auto records = open_records(header, batch, {}, batch.size()).value();
  MR_ASSERT(for_each_record(header, records, [&](const RecordView& record) {
    values.push_back(text(record.value));
    return true;
  }));
  return values;
}

inline std::vector<std::string> values_for(const TurnResult& result, const std::string& topic) {
  std::vector<std::string> values;
  for (const auto& output : result.outputs) {
    if (output.to.topic != topic) continue;
    for (const auto& batch : output.batches) {
      for (auto& value : values_in(batch)) values.push_back(std::move(value));
    }
  }
  return values;
}

class TestTurns {
 public:
  static constexpr std::int64_t plenty = 1 << 28;

  explicit TestTurns(std::deque<TestStep> steps, TurnSettings settings = {},
                     std::int64_t memory_bytes = plenty)
      : memory(std::make_shared<StreamMemory>(memory_bytes)),
        settings_(std::move(settings)),
        steps_(std::move(steps)) {
    settings_.stream = "test";
    begin_anew();
  }

  /// As after a crash: only what is in `changelog` is left.
  void begin_anew() {
    std::vector<OperatorChain::Step> steps;
    for (const auto& step : steps_) {
      steps.push_back({"step-" + std::to_string(steps.size()),
                       {nullptr, std::make_unique<TestStep>(step.on_record, step.on_timer)}});
    }
    state =
        std::make_unique<TurnState>(settings_, std::move(steps), "out", memory, clock, Codecs());
    state->outputs().set_producer(1, 0);
    state->outputs().set_partitions("out", 1);
    state->outputs().set_partitions("bad", 1);
    Payload batches;
    std::int64_t offset = 0;
    for (const auto& batch : changelog) batches.add(at_offset(batch, offset));
    Offset next{0};
    const auto replayed = state->replay(batches, next);
    MR_ASSERT(replayed.has_value());
    if (!state->positions().contains("in")) state->set_position("in", {.next = {0}});
  }

  /// Appends to the input's log.
  void send(std::vector<std::string> values, std::int64_t timestamp = 100,
            std::optional<std::string> key = {}) {
    BatchBuilder builder({.base_offset = {log_end_}});
    for (const auto& value : values) {
      std::optional<Bytes> bytes;
      if (key) bytes = as_bytes(*key);
      builder.add({timestamp}, bytes, as_bytes(value));
    }
    log_end_ += static_cast<std::int64_t>(values.size());
    log_.push_back(std::move(builder).finish().value());
  }

  /// One turn over everything from the position on; what it commits goes into `changelog`.
  TurnResult turn() {
    TurnInput input{.sources = {}, .now = {1000}};
    TurnInput::Source source{.topic = "in", .batches = {}, .aborted = {}};
    for (const auto& batch : log_) {
      const auto header = read_batch_header(batch).value();
      if (header.last_offset() >= position()) source.batches.add(batch);
    }
    if (!source.batches.empty()) input.sources.push_back(std::move(source));
    auto result = state->run(input);
    state->outputs().written();
    if (result.changelog) changelog.push_back(*result.changelog);
    return result;
  }

  Offset position() const { return state->positions().find("in")->second.next; }
  std::string state_at(const std::string& key, std::size_t step = 0) {
    return text(state->chain().state_of(step).get(as_bytes(key)));
  }

  TestClock clock;
  std::shared_ptr<StreamMemory> memory;
  std::unique_ptr<TurnState> state;
  std::vector<Buffer> changelog;

 private:
  static Buffer at_offset(const Buffer& batch, std::int64_t& offset) {
    auto header = read_batch_header(batch).value();
    header.base_offset = {offset};
    offset = header.last_offset().value + 1;
    MutableBuffer moved(batch.size());
    moved.append(batch);
    write_batch_header(header, {moved.data(), batch_header_bytes});
    return std::move(moved).freeze();
  }

  TurnSettings settings_;
  std::deque<TestStep> steps_;
  std::vector<Buffer> log_;
  std::int64_t log_end_ = 0;
};

}  // namespace millrace::kernel
