#include "kernel/streams/stream_turn.h"

#include <algorithm>
#include <array>
#include <set>

#include "kernel/config/text.h"
#include "kernel/partition/batch_validator.h"

namespace millrace::kernel {

namespace {

// A turn ends at a record once it has taken so long, emitted or changed so much.
constexpr Duration turn_time_max = std::chrono::milliseconds(100);
constexpr std::size_t turn_output_bytes_max = 8UL << 20;
constexpr std::size_t turn_changes_max = 100'000;
constexpr std::uint64_t look_every = 16;
// Pauses are made between turns: shorter ones are put together.
constexpr Duration turn_pause_min = std::chrono::milliseconds(10);

RecordView view_of(const LegacyMessage& message) {
  RecordView record;
  record.offset = message.offset;
  record.timestamp = message.timestamp;
  if (message.key) record.key = message.key->bytes();
  if (message.value) record.value = message.value->bytes();
  return record;
}

// Batches of transactions that were aborted, as a consumer finds them (KIP-98): from the offset
// where one begins to its producer's next marker.
class Aborted {
 public:
  explicit Aborted(const std::vector<AbortedTransaction>& rows) : rows_(rows) {
    std::ranges::sort(rows_, {}, &AbortedTransaction::first_offset);
  }

  bool contains(const BatchHeader& header) {
    while (next_ < rows_.size() && rows_[next_].first_offset <= header.last_offset()) {
      producers_.insert(rows_[next_++].producer_id);
    }
    if (!header.control()) return header.transactional() && producers_.contains(header.producer_id);
    producers_.erase(header.producer_id);
    return true;
  }

 private:
  std::vector<AbortedTransaction> rows_;
  std::size_t next_ = 0;
  std::set<std::int64_t> producers_;
};

}  // namespace

std::string to_string(const StreamFailure& failure) {
  std::string text;
  if (!failure.step.empty()) text += concat("step ", failure.step);
  if (failure.offset != Offset{}) {
    if (!text.empty()) text += " at ";
    text += concat(to_string(failure.source), " offset ", failure.offset.value);
  }
  if (!text.empty()) text += ": ";
  return text + failure.error.detail;
}

TurnState::TurnState(TurnSettings settings, std::vector<OperatorChain::Step> steps,
                     std::string sink, std::shared_ptr<StreamMemory> memory, const Clock& clock,
                     Codecs codecs)
    : settings_(std::move(settings)),
      memory_(std::move(memory)),
      clock_(clock),
      codecs_(codecs),
      outputs_(*memory_),
      chain_(std::move(steps), std::move(sink), *memory_, clock, outputs_) {}

TurnResult TurnState::run(const TurnInput& input) {
  TurnResult result;
  begun_ = clock_.now();
  records_ = 0;
  for (const auto& source : input.sources) {
    if (!run_source(source, result)) break;
  }
  hurried_.store(false, std::memory_order_relaxed);
  result.pause = chain_.take_pause();
  if (std::exchange(progress_, false)) {
    result.outputs = outputs_.take();
    result.changelog = log_.changes(chain_, positions_, input.now);
  }
  result.positions = positions_;
  result.counts = chain_.take_counts();
  for (std::size_t at = 0; at < chain_.size(); ++at) {
    result.state_entries.push_back(chain_.state_of(at).size());
  }
  result.state_bytes = chain_.state_bytes();
  return result;
}

void TurnState::set_position(const std::string& topic, SourcePosition position) {
  positions_[topic] = position;
  progress_ = true;
}

bool TurnState::is_enough() {
  if (chain_.pause() >= turn_pause_min) return true;
  if (++records_ % look_every != 0) return hurried_.load(std::memory_order_relaxed);
  return hurried_.load(std::memory_order_relaxed) || outputs_.bytes() > turn_output_bytes_max ||
         chain_.changes() > turn_changes_max || clock_.now() - begun_ > turn_time_max;
}

// False, here and below: the turn ends.
bool TurnState::run_source(const TurnInput::Source& input, TurnResult& result) {
  const TopicPartition source{input.topic, settings_.partition};
  const auto fail = [&](Offset offset, Error error) {
    result.failure = StreamFailure{{}, source, offset, std::move(error)};
    return false;
  };
  const auto read = input.batches.flatten();
  auto& position = positions_[input.topic].next;
  if (!read) return fail(position, read.error());
  Aborted aborted(input.aborted);
  for (auto left = *read; !left.empty();) {
    const auto head = read_entry_head(left);
    if (!head) return fail(position, head.error());
    const auto entry = left.slice(0, head->total_bytes);
    left = left.slice(head->total_bytes);
    if (head->magic < 2) {
      if (!run_set(source, entry, result)) return false;
      continue;
    }
    const auto header = read_batch_header(entry);
    if (!header) return fail(position, header.error());
    if (!verify_crc(entry))
      return fail(header->base_offset, {Errc::corrupt, "a batch's checksum is wrong"});
    const bool passed_over = aborted.contains(*header);
    if (header->last_offset() < position) continue;
    if (!passed_over && !run_batch(source, *header, entry, result)) return false;
    position = header->last_offset() + 1;
    progress_ = true;
  }
  return true;
}

bool TurnState::run_batch(const TopicPartition& source, const BatchHeader& header,
                          const Buffer& batch, TurnResult& result) {
  auto& position = positions_.find(source.topic)->second.next;
  const auto records = open_records(header, batch, codecs_, opened_bytes_max);
  if (!records) {
    result.failure = StreamFailure{{}, source, header.base_offset, records.error()};
    return false;
  }
  bool go_on = true;
  const auto read = for_each_record(header, *records, [&](const RecordView& record) {
    if (record.offset < position) return true;
    if (!run_record(source, record, result)) return go_on = false;
    position = record.offset + 1;
    progress_ = true;
    return go_on = !is_enough();
  });
  if (!read) {
    result.failure = StreamFailure{{}, source, header.base_offset, read.error()};
    return false;
  }
  return go_on;
}

bool TurnState::run_set(const TopicPartition& source, const Buffer& set, TurnResult& result) {
  auto& position = positions_.find(source.topic)->second.next;
  const auto messages = open_legacy_entry(set, codecs_, opened_bytes_max);
  if (!messages) {
    result.failure = StreamFailure{{}, source, position, messages.error()};
    return false;
  }
  for (const auto& message : *messages) {
    if (message.offset < position) continue;
    if (!run_record(source, view_of(message), result)) return false;
    position = message.offset + 1;
    progress_ = true;
    if (is_enough()) return false;
  }
  return true;
}

bool TurnState::is_to_skip(const TopicPartition& source, Offset offset) const {
  return settings_.skip && settings_.skip->offset == offset && settings_.skip->source == source;
}

bool TurnState::run_record(const TopicPartition& source, const RecordView& record,
                           TurnResult& result) {
  if (is_to_skip(source, record.offset)) {
    ++result.skipped;
    return true;
  }
  chain_.advance(record.timestamp);
  while (auto failure = chain_.fire_timers(source, settings_.on_error != ErrorPolicy::stop)) {
    if (failure->kind == ChainFailure::Kind::record && settings_.on_error != ErrorPolicy::stop) {
      ++result.skipped;
      continue;
    }
    const bool settled = settle(source, record, *std::move(failure), result);
    if (result.failure) result.failure->of_timer = true;
    return settled;
  }
  auto failure = chain_.process(source, record);
  return !failure || settle(source, record, *std::move(failure), result);
}

bool TurnState::settle(const TopicPartition& source, const RecordView& record, ChainFailure failure,
                       TurnResult& result) {
  if (failure.kind == ChainFailure::Kind::unknown_topic) {
    auto wrong = settings_.check_output ? settings_.check_output(failure.topic) : std::nullopt;
    if (!wrong) {
      result.unknown_topic = std::move(failure.topic);
      return false;
    }
    failure.kind = ChainFailure::Kind::record;
    chain_.count_error(failure.step_at);
    failure.error = {Errc::invalid_argument, concat("it sends to ", *std::move(wrong))};
  }
  if (failure.kind == ChainFailure::Kind::record && settings_.on_error != ErrorPolicy::stop) {
    if (settings_.on_error == ErrorPolicy::dead_letter &&
        !write_dead_letter(source, record, failure, result)) {
      return false;
    }
    ++result.skipped;
    return true;
  }
  result.failure = StreamFailure{chain_.name_of(failure.step_at), source, record.offset,
                                 std::move(failure.error)};
  return false;
}

bool TurnState::write_dead_letter(const TopicPartition& source, const RecordView& record,
                                  const ChainFailure& failure, TurnResult& result) {
  const auto partition = std::to_string(source.partition);
  const auto offset = std::to_string(record.offset.value);
  auto headers = record.headers;
  const auto add = [&headers](std::string_view name, std::string_view value) {
    headers.push_back({name, as_bytes(value)});
  };
  add("millrace-error", failure.error.detail);
  add("millrace-stream", settings_.stream);
  add("millrace-step", chain_.name_of(failure.step_at));
  add("millrace-topic", source.topic);
  add("millrace-partition", partition);
  add("millrace-offset", offset);
  const OutputRecord letter{.key = record.key,
                            .value = record.value,
                            .timestamp = record.timestamp,
                            .headers = headers,
                            .topic = settings_.dead_letter};
  auto failed = chain_.emit_past(source, letter);
  if (!failed) return true;
  if (failed->kind == ChainFailure::Kind::unknown_topic) {
    result.unknown_topic = std::move(failed->topic);
  } else {
    result.failure = StreamFailure{{}, source, record.offset, std::move(failed->error)};
  }
  return false;
}

Result<std::uint64_t> TurnState::replay(const Payload& batches, Offset& next) {
  MR_TRY(const auto read, batches.flatten());
  std::uint64_t records = 0;
  for (auto left = read; !left.empty();) {
    MR_TRY(const auto header, read_batch_header(left));
    const auto batch = left.slice(0, header.total_bytes());
    left = left.slice(header.total_bytes());
    if (header.last_offset() < next) continue;
    if (!verify_crc(batch)) {
      return Error{Errc::corrupt, concat("the batch at offset ", header.base_offset.value,
                                         " has a wrong checksum")};
    }
    MR_TRY(const auto opened, open_records(header, batch, codecs_, opened_bytes_max));
    Result<> applied;
    const auto apply = [&](const RecordView& record) {
      if (record.offset < next) return true;
      applied = KeyedStateLog::apply(record.key, record.value, chain_, positions_);
      if (!applied) {
        applied = Error{applied.error().code,
                        concat("offset ", record.offset.value, ": ", applied.error().detail)};
      }
      ++records;
      return applied.has_value();
    };
    if (!header.control()) MR_CHECK(for_each_record(header, opened, apply));
    MR_CHECK(std::move(applied));
    next = header.last_offset() + 1;
  }
  return records;
}

}  // namespace millrace::kernel
