#include "aggregate_driver_state.h"

#include <algorithm>

namespace millrace::testing {

namespace {

// A timer, an outcome or a change of the cluster whose events were not appended is told again.
constexpr Duration retell_after = std::chrono::seconds(1);

Error with_place(Error error, const AggregateDriver::Record& record) {
  error.detail =
      "at offset " + std::to_string(record.offset.value) + " of the log: " + error.detail;
  return error;
}

class EntryReader final : public SnapshotReader {
 public:
  explicit EntryReader(const std::vector<AggregateDriver::Entry>& entries) : entries_(entries) {}
  std::optional<Entry> next() override {
    if (at_ == entries_.size()) return std::nullopt;
    const auto& entry = entries_[at_++];
    return Entry{as_bytes(entry.key), as_bytes(entry.value)};
  }

 private:
  const std::vector<AggregateDriver::Entry>& entries_;
  std::size_t at_ = 0;
};

}  // namespace

std::string text_of_thrown(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

class AggregateDriver::State::Step final : public Context {
 public:
  explicit Step(State& driver) : driver_(driver) {}

  void emit(Bytes key, std::optional<Bytes> value) override {
    Record record;
    record.time = driver_.wall_;
    record.key = Buffer::copy_of(key);
    if (value) record.value = Buffer::copy_of(*value);
    events.push_back(std::move(record));
  }
  void answer(ReplyTo to, std::unique_ptr<Message> message) override {
    answers.emplace_back(to, Answer{ErrorCode::none, {}, std::move(message), {}});
  }
  void refuse(ReplyTo to, ErrorCode error, std::string detail) override {
    answers.emplace_back(to, Answer{error, std::move(detail), nullptr, {}});
  }
  void set_timer(std::string_view name, Duration after) override {
    driver_.timers_[std::string(name)] = {driver_.now_ + after, ++driver_.timers_set_};
  }
  void cancel_timer(std::string_view name) override {
    const auto found = driver_.timers_.find(name);
    if (found != driver_.timers_.end()) driver_.timers_.erase(found);
  }
  void start(Effect effect) override { effects.push_back(std::move(effect)); }

  MonoTime now() const noexcept override { return driver_.now_; }
  Timestamp wall() const noexcept override { return driver_.wall_; }
  Uuid uuid() override {
    Uuid id;
    for (auto& byte : id.bytes) byte = static_cast<std::uint8_t>(driver_.ids_());
    return id;
  }
  const TopicPartition& partition() const noexcept override { return driver_.settings_.partition; }
  Epoch leader_epoch() const noexcept override { return driver_.epoch_; }
  const ClusterView& cluster() const noexcept override { return driver_.cluster_; }
  std::string setting(std::string_view name) const override {
    const auto found = driver_.given_.find(name);
    return found == driver_.given_.end() ? std::string() : found->second;
  }

  std::vector<Record> events;
  std::vector<std::pair<ReplyTo, Answer>> answers;
  std::vector<Effect> effects;

 private:
  State& driver_;
};

ReplyTo AggregateDriver::State::new_token() {
  const auto token = static_cast<ReplyTo>(++tokens_);
  waiting_.insert(token);
  return token;
}

// One call of the aggregate, and what follows from it.
AggregateDriver::State::Ended AggregateDriver::State::run(
    const std::function<void(Context&)>& call) {
  Step step(*this);
  try {
    call(step);
  } catch (...) {
    const auto why = text_of_thrown(std::current_exception());
    refuse_all(step, ErrorCode::coordinator_not_available, why);
    fail(why);
    return Ended::failed;
  }
  return commit(step);
}

void AggregateDriver::State::refuse_all(const Step& step, ErrorCode error,
                                        const std::string& detail) {
  for (const auto& [to, answer] : step.answers) reply(to, {error, detail, nullptr, {}});
}

AggregateDriver::State::Ended AggregateDriver::State::commit(Step& step) {
  if (!step.events.empty()) {
    const auto ended = append(step);
    if (ended != Ended::well) return ended;
  }
  for (auto& [to, answer] : step.answers) {
    held_.push_back({end_, to, std::move(answer), std::nullopt});
  }
  for (auto& effect : step.effects) held_.push_back({end_, {}, {}, std::move(effect)});
  let_out();
  return Ended::well;
}

AggregateDriver::State::Ended AggregateDriver::State::append(Step& step) {
  if (appends_to_fail_ > 0) {
    --appends_to_fail_;
    refuse_all(step, append_error_, "the append failed");
    return Ended::not_appended;
  }
  const auto first = log_.size();
  for (auto& event : step.events) {
    event.offset = end_;
    end_ = end_ + 1;
    log_.push_back(std::move(event));
  }
  if (!held_back_) high_watermark_ = end_;
  for (auto at = first; at < log_.size(); ++at) {
    std::string why;
    try {
      const auto evolved = evolve(*object_, log_[at], false);
      if (evolved) continue;
      why = evolved.error().detail;
    } catch (...) {
      why = text_of_thrown(std::current_exception());
    }
    refuse_all(step, ErrorCode::coordinator_not_available, why);
    fail(why);
    return Ended::failed;
  }
  return Ended::well;
}

// Who makes it throw is not told to try again.
void AggregateDriver::State::decide(std::string_view key, Message& body, ReplyTo reply_to) {
  Command command{key, body, reply_to};
  Step step(*this);
  try {
    object_->decide(command, step);
  } catch (...) {
    const auto why = text_of_thrown(std::current_exception());
    reply(reply_to, {ErrorCode::unknown_server_error, why, nullptr, {}});
    refuse_all(step, ErrorCode::coordinator_not_available, why);
    fail(why);
    return;
  }
  commit(step);
}

void AggregateDriver::State::cluster_changed() {
  const auto ended = run([this](Context& context) { object_->cluster_changed(context); });
  if (ended == Ended::not_appended) later([this] { cluster_changed(); });
}

void AggregateDriver::State::end_effect(const std::string& name, ErrorCode error,
                                        const std::string& detail, Message* answer) {
  const EffectOutcome outcome{name, error, detail, answer};
  const auto ended = run([&](Context& context) { object_->effect_done(outcome, context); });
  if (ended == Ended::failed) return;
  if (ended == Ended::not_appended) {
    // The test's message may be gone by then.
    return later([=, this] { end_effect(name, error, detail, nullptr); });
  }
  const auto found = effects_.find(name);
  if (found == effects_.end()) return;
  found->second.pop_front();
  if (found->second.empty()) effects_.erase(found);
}

void AggregateDriver::State::later(std::function<void()> body) {
  retries_.push_back({now_ + retell_after, std::move(body)});
}

Result<> AggregateDriver::State::evolve(PartitionAggregate& into, const Record& record,
                                        bool replayed) {
  const EventInfo info{record.offset,      record.time,           replayed,
                       record.producer.id, record.producer.epoch, record.producer.transactional};
  if (record.commit) {
    into.end_transaction(record.producer.id, record.producer.epoch, *record.commit, info);
    return {};
  }
  RecordView view;
  view.offset = record.offset;
  view.timestamp = record.time;
  if (record.key) view.key = record.key->bytes();
  if (record.value) view.value = record.value->bytes();
  auto evolved = into.evolve(view, info);
  if (!evolved) return with_place(std::move(evolved.error()), record);
  return {};
}

// A fault of the aggregate: unloaded, reported, loaded again.
void AggregateDriver::State::fail(std::string why) {
  failure_ = std::move(why);
  ++failures_;
  drop();
  if (auto again = load(); !again) failure_ += "; not loaded again: " + again.error().detail;
}

void AggregateDriver::State::drop() {
  object_.reset();
  timers_.clear();
  retries_.clear();
  effects_.clear();
  held_.clear();
  const auto lost = std::exchange(waiting_, {});
  for (const auto token : lost) {
    answers_[token] = {ErrorCode::not_coordinator, "the aggregate was unloaded", nullptr, now_};
  }
}

Result<> AggregateDriver::State::replay(PartitionAggregate& into, std::size_t from) const {
  for (auto at = from; at < log_.size(); ++at) MR_CHECK(evolve(into, log_[at], true));
  return {};
}

Result<> AggregateDriver::State::load() {
  ++epoch_.value;
  auto object = factory_.make(settings_.partition);
  MR_ASSERT(object != nullptr);
  std::size_t from = 0;
  try {
    if (snapshot_) {
      EntryReader reader(snapshot_->entries);
      MR_CHECK(object->restore(reader));
      while (from < log_.size() && log_[from].offset < snapshot_->end) ++from;
    }
    MR_CHECK(replay(*object, from));
  } catch (...) {
    return Error{Errc::internal, text_of_thrown(std::current_exception())};
  }
  object_ = std::move(object);
  Step step(*this);
  try {
    object_->loaded(step);
  } catch (...) {
    drop();
    return Error{Errc::internal, "loaded(): " + text_of_thrown(std::current_exception())};
  }
  if (commit(step) != Ended::well) {
    drop();
    return Error{Errc::unsupported, "loaded(): its first events are not appended"};
  }
  return {};
}

void AggregateDriver::State::reply(ReplyTo token, Answer answer) {
  if (waiting_.erase(token) == 0) return;
  answer.at = now_;
  answers_[token] = std::move(answer);
}

void AggregateDriver::State::start(Effect effect) {
  auto name = effect.name;
  effects_[std::move(name)].push_back(std::move(effect));
}

void AggregateDriver::State::let_out() {
  auto held = std::exchange(held_, {});
  for (auto& one : held) {
    if (one.needs > high_watermark_) {
      held_.push_back(std::move(one));
    } else if (one.effect) {
      start(*std::move(one.effect));
    } else {
      reply(one.to, std::move(one.answer));
    }
  }
}

void AggregateDriver::State::move_clock(MonoTime to) {
  wall_rest_ += to - now_;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wall_rest_);
  wall_.ms += ms.count();
  wall_rest_ -= ms;
  now_ = to;
}

bool AggregateDriver::State::fire_next(MonoTime until) {
  const auto next = std::ranges::min_element(timers_, {}, [](const auto& timer) {
    return std::pair(timer.second.due, timer.second.order);
  });
  if (!retries_.empty() && (next == timers_.end() || retries_.front().due < next->second.due)) {
    if (retries_.front().due > until) return false;
    const auto retry = std::move(retries_.front());
    retries_.pop_front();
    move_clock(std::max(now_, retry.due));
    retry.body();
    return true;
  }
  if (next == timers_.end() || next->second.due > until) return false;
  move_clock(std::max(now_, next->second.due));
  const auto name = next->first;
  timers_.erase(next);
  const auto ended = run([&](Context& context) { object_->timer(name, context); });
  if (ended == Ended::not_appended && !timers_.contains(name)) {
    timers_[name] = {now_ + retell_after, ++timers_set_};
  }
  return true;
}

}  // namespace millrace::testing
