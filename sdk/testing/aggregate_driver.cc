#include <millrace/testing/aggregate_driver.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <random>
#include <set>

namespace millrace::testing {

namespace {

// A timer that sets itself anew for the same moment would never let time go on.
constexpr std::size_t timers_at_once_max = 1'000'000;

Error with_place(Error error, const AggregateDriver::Record& record) {
  error.detail =
      "at offset " + std::to_string(record.offset.value) + " of the log: " + error.detail;
  return error;
}

class KeptEntries final : public SnapshotWriter {
 public:
  void put(Bytes key, Bytes value) override {
    entries.push_back({std::string(as_text(key)), std::string(as_text(value))});
  }
  std::vector<AggregateDriver::Entry> entries;
};

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

std::string text_of(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

}  // namespace

// ---- DriverCluster ----

Uuid DriverCluster::put(const std::string& name, std::int32_t partitions) {
  return put(name, std::vector<std::vector<std::string>>(static_cast<std::size_t>(partitions)));
}

Uuid DriverCluster::put(const std::string& name, std::vector<std::vector<std::string>> racks) {
  ++version_;
  auto& topic = topics_[name];
  if (topic.id.is_none()) {
    topic.name = name;
    ++ids_;
    for (std::size_t at = 0; at < sizeof ids_; ++at) {
      topic.id.bytes[15 - at] = static_cast<std::uint8_t>(ids_ >> (8 * at));
    }
  }
  topic.racks = std::move(racks);
  return topic.id;
}

void DriverCluster::remove(std::string_view name) {
  const auto found = topics_.find(name);
  if (found == topics_.end()) return;
  topics_.erase(found);
  ++version_;
}

const ClusterTopic* DriverCluster::find(std::string_view name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : &found->second;
}

const ClusterTopic* DriverCluster::find(const Uuid& id) const {
  for (const auto& [name, topic] : topics_) {
    if (topic.id == id) return &topic;
  }
  return nullptr;
}

std::vector<std::string_view> DriverCluster::names() const {
  std::vector<std::string_view> all;
  for (const auto& [name, topic] : topics_) all.push_back(name);
  return all;
}

// ---- the runtime ----

class AggregateDriver::State {
 public:
  State(AggregateFactory& factory, Settings settings)
      : factory_(factory),
        settings_(std::move(settings)),
        wall_(settings_.wall),
        ids_(settings_.seed) {}

  // What one call asked for, until it has returned.
  class Step;

  bool run(const std::function<void(Context&)>& call);
  void commit(Step& step);
  bool append(Step& step);
  void fail(std::string why);
  void let_out();
  void reply(ReplyTo token, Answer answer);
  void start(Effect effect);
  void drop();
  Result<> load();
  Result<> replay(PartitionAggregate& into, std::size_t from) const;
  static Result<> evolve(PartitionAggregate& into, const Record& record, bool replayed);
  bool fire_next(MonoTime until);
  void move_clock(MonoTime to);
  ReplyTo new_token();

  struct Timer {
    MonoTime due;
    std::uint64_t order = 0;
  };
  // What leaves once the high watermark has reached `needs`: an answer, or an effect.
  struct Held {
    Offset needs;
    ReplyTo to = ReplyTo::nobody;
    Answer answer;
    std::optional<Effect> effect;
  };
  struct Snapshot {
    Offset end;
    std::vector<Entry> entries;
  };

  AggregateFactory& factory_;
  Settings settings_;
  std::unique_ptr<PartitionAggregate> object_;
  Epoch epoch_;

  std::vector<Record> log_;
  Offset end_{0};
  Offset high_watermark_{0};
  bool held_back_ = false;
  std::size_t appends_to_fail_ = 0;
  ErrorCode append_error_ = ErrorCode::none;
  std::optional<Snapshot> snapshot_;

  MonoTime now_{};
  Timestamp wall_;
  Duration wall_rest_{};
  std::map<std::string, Timer, std::less<>> timers_;
  std::uint64_t timers_set_ = 0;

  std::uint64_t tokens_ = 0;
  std::map<ReplyTo, Answer> answers_;
  std::set<ReplyTo> waiting_;
  std::vector<Held> held_;
  std::map<std::string, Effect, std::less<>> effects_;

  std::string failure_;
  std::size_t failures_ = 0;
  DriverCluster cluster_;
  std::map<std::string, std::string, std::less<>> given_;
  std::mt19937_64 ids_;
};

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

// One call of the aggregate, and what follows from it. False when it threw.
bool AggregateDriver::State::run(const std::function<void(Context&)>& call) {
  Step step(*this);
  try {
    call(step);
  } catch (...) {
    fail(text_of(std::current_exception()));
    return false;
  }
  commit(step);
  return true;
}

void AggregateDriver::State::commit(Step& step) {
  if (!step.events.empty() && !append(step)) return;
  for (auto& [to, answer] : step.answers) {
    held_.push_back({end_, to, std::move(answer), std::nullopt});
  }
  for (auto& effect : step.effects) held_.push_back({end_, {}, {}, std::move(effect)});
  let_out();
}

bool AggregateDriver::State::append(Step& step) {
  if (appends_to_fail_ > 0) {
    --appends_to_fail_;
    for (auto& [to, answer] : step.answers) {
      reply(to, {append_error_, "the append failed", nullptr, {}});
    }
    return false;
  }
  const auto first = log_.size();
  for (auto& event : step.events) {
    event.offset = end_;
    end_ = end_ + 1;
    log_.push_back(std::move(event));
  }
  if (!held_back_) high_watermark_ = end_;
  for (auto at = first; at < log_.size(); ++at) {
    try {
      const auto evolved = evolve(*object_, log_[at], false);
      if (evolved) continue;
      fail(evolved.error().detail);
    } catch (...) {
      fail(text_of(std::current_exception()));
    }
    return false;
  }
  return true;
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
    return Error{Errc::internal, text_of(std::current_exception())};
  }
  object_ = std::move(object);
  Step step(*this);
  try {
    object_->loaded(step);
  } catch (...) {
    drop();
    return Error{Errc::internal, "loaded(): " + text_of(std::current_exception())};
  }
  commit(step);
  return {};
}

void AggregateDriver::State::reply(ReplyTo token, Answer answer) {
  if (waiting_.erase(token) == 0) return;
  answer.at = now_;
  answers_[token] = std::move(answer);
}

void AggregateDriver::State::start(Effect effect) {
  auto name = effect.name;
  effects_.try_emplace(std::move(name), std::move(effect));
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
  if (next == timers_.end() || next->second.due > until) return false;
  move_clock(std::max(now_, next->second.due));
  const auto name = next->first;
  timers_.erase(next);
  run([&](Context& context) { object_->timer(name, context); });
  return true;
}

// ---- AggregateDriver ----

AggregateDriver::AggregateDriver(AggregateFactory& factory, Settings settings)
    : state_(std::make_unique<State>(factory, std::move(settings))) {
  const auto loaded = state_->load();
  if (!loaded) {
    state_->failure_ = loaded.error().detail;
    ++state_->failures_;
  }
}
AggregateDriver::~AggregateDriver() = default;
AggregateDriver::AggregateDriver(AggregateDriver&&) noexcept = default;
AggregateDriver& AggregateDriver::operator=(AggregateDriver&&) noexcept = default;

ReplyTo AggregateDriver::send(std::string_view key, std::unique_ptr<Message> body) {
  const auto token = state_->new_token();
  if (!loaded()) {
    state_->reply(token, {ErrorCode::not_coordinator, "nothing is loaded", nullptr, {}});
    return token;
  }
  Command command{key, *body, token};
  state_->run([&](Context& context) { state_->object_->decide(command, context); });
  return token;
}

ReplyTo AggregateDriver::send(std::string_view key, std::string_view bytes) {
  return send(key, BytesMessage(Buffer::copy_of(bytes)));
}

void AggregateDriver::tell(std::string_view key, std::unique_ptr<Message> body) {
  if (!loaded()) return;
  Command command{key, *body, ReplyTo::nobody};
  state_->run([&](Context& context) { state_->object_->decide(command, context); });
}

ReplyTo AggregateDriver::ask(std::string_view key, const Message& question) {
  const auto token = state_->new_token();
  auto found = query(key, question);
  Answer answer;
  if (found) {
    answer.message = *std::move(found);
  } else {
    answer.error = loaded() ? error_code_of(found.error()) : ErrorCode::not_coordinator;
    answer.detail = found.error().detail;
  }
  state_->held_.push_back({state_->end_, token, std::move(answer), std::nullopt});
  state_->let_out();
  return token;
}

Result<std::unique_ptr<Message>> AggregateDriver::query(std::string_view key,
                                                        const Message& question) {
  if (!loaded()) return Error{Errc::closed, "nothing is loaded"};
  try {
    return state_->object_->query(key, question);
  } catch (...) {
    state_->fail(text_of(std::current_exception()));
    return Error{Errc::internal, state_->failure_};
  }
}

const AggregateDriver::Answer* AggregateDriver::answer(ReplyTo token) const {
  const auto found = state_->answers_.find(token);
  return found == state_->answers_.end() ? nullptr : &found->second;
}

ErrorCode AggregateDriver::error(ReplyTo token) const {
  const auto* found = answer(token);
  return found ? found->error : ErrorCode::none;
}

std::size_t AggregateDriver::waiting() const noexcept { return state_->waiting_.size(); }

void AggregateDriver::advance(Duration by) {
  const auto until = state_->now_ + by;
  for (std::size_t fired = 0; state_->fire_next(until); ++fired) {
    MR_ASSERT(fired < timers_at_once_max);
  }
  state_->move_clock(until);
}

bool AggregateDriver::advance_to_timer() { return state_->fire_next(MonoTime::max()); }

MonoTime AggregateDriver::now() const noexcept { return state_->now_; }
Timestamp AggregateDriver::wall() const noexcept { return state_->wall_; }

std::vector<std::string> AggregateDriver::timers() const {
  std::vector<std::string> names;
  for (const auto& [name, timer] : state_->timers_) names.push_back(name);
  return names;
}

std::optional<Duration> AggregateDriver::timer_in(std::string_view name) const {
  const auto found = state_->timers_.find(name);
  if (found == state_->timers_.end()) return std::nullopt;
  return found->second.due - state_->now_;
}

const std::vector<AggregateDriver::Record>& AggregateDriver::log() const noexcept {
  return state_->log_;
}
Offset AggregateDriver::end() const noexcept { return state_->end_; }

std::span<const AggregateDriver::Record> AggregateDriver::log_from(Offset from) const {
  const auto first = std::ranges::lower_bound(state_->log_, from, {}, &Record::offset);
  return {first, state_->log_.end()};
}

Result<> AggregateDriver::write(std::string_view key, std::optional<std::string_view> value,
                                Producer producer) {
  Record record;
  record.offset = state_->end_;
  record.time = state_->wall_;
  record.key = Buffer::copy_of(key);
  if (value) record.value = Buffer::copy_of(*value);
  record.producer = producer;
  state_->log_.push_back(std::move(record));
  state_->end_ = state_->end_ + 1;
  if (!state_->held_back_) state_->high_watermark_ = state_->end_;
  if (!loaded()) return {};
  try {
    auto evolved = State::evolve(*state_->object_, state_->log_.back(), false);
    if (!evolved) state_->fail(evolved.error().detail);
    return evolved;
  } catch (...) {
    state_->fail(text_of(std::current_exception()));
    return Error{Errc::internal, state_->failure_};
  }
}

void AggregateDriver::end_transaction(std::int64_t producer_id, std::int16_t producer_epoch,
                                      bool commit) {
  Record record;
  record.offset = state_->end_;
  record.time = state_->wall_;
  record.producer = {producer_id, producer_epoch, true};
  record.commit = commit;
  state_->log_.push_back(std::move(record));
  state_->end_ = state_->end_ + 1;
  if (!state_->held_back_) state_->high_watermark_ = state_->end_;
  if (!loaded()) return;
  try {
    // Nothing to refuse: an end has no content.
    (void)State::evolve(*state_->object_, state_->log_.back(), false);
  } catch (...) {
    state_->fail(text_of(std::current_exception()));
  }
}

void AggregateDriver::compact(bool tombstones) {
  std::map<std::string, Offset, std::less<>> last;
  for (const auto& record : state_->log_) {
    if (record.key) last.insert_or_assign(std::string(record.key->text()), record.offset);
  }
  std::erase_if(state_->log_, [&](const Record& record) {
    if (!record.key || record.producer.transactional) return false;
    if (last.find(record.key->text())->second != record.offset) return true;
    return !tombstones && !record.value;
  });
}

void AggregateDriver::cut(Offset from) {
  MR_ASSERT(!loaded());
  std::erase_if(state_->log_, [&](const Record& record) { return record.offset >= from; });
  state_->end_ = std::min(state_->end_, from);
  state_->high_watermark_ = std::min(state_->high_watermark_, from);
  if (state_->snapshot_ && state_->snapshot_->end > from) state_->snapshot_.reset();
}

void AggregateDriver::fail_appends(std::size_t calls, ErrorCode error) {
  state_->appends_to_fail_ = calls;
  state_->append_error_ = error;
}

void AggregateDriver::hold_high_watermark() { state_->held_back_ = true; }

void AggregateDriver::move_high_watermark(Offset to) {
  MR_ASSERT(to >= state_->high_watermark_ && to <= state_->end_);
  state_->held_back_ = true;
  state_->high_watermark_ = to;
  state_->let_out();
}

void AggregateDriver::release_high_watermark() {
  state_->held_back_ = false;
  state_->high_watermark_ = state_->end_;
  state_->let_out();
}

Offset AggregateDriver::high_watermark() const noexcept { return state_->high_watermark_; }

bool AggregateDriver::loaded() const noexcept { return state_->object_ != nullptr; }
void AggregateDriver::unload() { state_->drop(); }

Result<> AggregateDriver::load() {
  MR_ASSERT(!loaded());
  return state_->load();
}

Result<> AggregateDriver::reload() {
  unload();
  return load();
}

Result<> AggregateDriver::take_snapshot() {
  KeptEntries kept;
  MR_CHECK(state_->object_->snapshot(kept));
  state_->snapshot_ = {state_->end_, std::move(kept.entries)};
  return {};
}

void AggregateDriver::forget_snapshot() { state_->snapshot_.reset(); }

Result<std::vector<AggregateDriver::Entry>> AggregateDriver::state() const {
  KeptEntries kept;
  MR_CHECK(state_->object_->snapshot(kept));
  std::ranges::sort(kept.entries);
  return std::move(kept.entries);
}

Result<std::vector<AggregateDriver::Entry>> AggregateDriver::replayed_state() const {
  const auto other = state_->factory_.make(state_->settings_.partition);
  MR_CHECK(state_->replay(*other, 0));
  KeptEntries kept;
  MR_CHECK(other->snapshot(kept));
  std::ranges::sort(kept.entries);
  return std::move(kept.entries);
}

const std::string& AggregateDriver::failure() const noexcept { return state_->failure_; }
std::size_t AggregateDriver::failures() const noexcept { return state_->failures_; }

DriverCluster& AggregateDriver::cluster() noexcept { return state_->cluster_; }

void AggregateDriver::cluster_changed() {
  if (!loaded()) return;
  state_->run([&](Context& context) { state_->object_->cluster_changed(context); });
}

void AggregateDriver::set(const std::string& setting, std::string value) {
  state_->given_[setting] = std::move(value);
}

std::vector<std::string> AggregateDriver::effects() const {
  std::vector<std::string> names;
  for (const auto& [name, effect] : state_->effects_) names.push_back(name);
  return names;
}

const Effect* AggregateDriver::effect(std::string_view name) const {
  const auto found = state_->effects_.find(name);
  return found == state_->effects_.end() ? nullptr : &found->second;
}

void AggregateDriver::finish_effect(std::string_view name, ErrorCode error, std::string_view detail,
                                    Message* answer) {
  const auto found = state_->effects_.find(name);
  MR_ASSERT(found != state_->effects_.end());
  const auto finished = std::move(found->second);
  state_->effects_.erase(found);
  const EffectOutcome outcome{finished.name, error, detail, answer};
  state_->run([&](Context& context) { state_->object_->effect_done(outcome, context); });
}

PartitionAggregate& AggregateDriver::aggregate() noexcept {
  MR_ASSERT(loaded());
  return *state_->object_;
}

}  // namespace millrace::testing
