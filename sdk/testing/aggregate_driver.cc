#include <millrace/testing/aggregate_driver.h>

#include <algorithm>
#include <exception>

#include "aggregate_driver_state.h"

namespace millrace::testing {

namespace {

// A timer that sets itself anew for the same moment would never let time go on.
constexpr std::size_t timers_at_once_max = 1'000'000;

class KeptEntries final : public SnapshotWriter {
 public:
  void put(Bytes key, Bytes value) override {
    entries.push_back({std::string(as_text(key)), std::string(as_text(value))});
  }
  std::vector<AggregateDriver::Entry> entries;
};

}  // namespace

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
  state_->decide(key, *body, token);
  return token;
}

ReplyTo AggregateDriver::send(std::string_view key, std::string_view bytes) {
  return send(key, BytesMessage(Buffer::copy_of(bytes)));
}

void AggregateDriver::tell(std::string_view key, std::unique_ptr<Message> body) {
  if (!loaded()) return;
  state_->decide(key, *body, ReplyTo::nobody);
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
    return Error{Errc::internal, text_of_thrown(std::current_exception())};
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
    auto evolved = State::evolve(*state_->object_, state_->log_.back(), true);
    if (!evolved) state_->fail(evolved.error().detail);
    return evolved;
  } catch (...) {
    state_->fail(text_of_thrown(std::current_exception()));
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
    (void)State::evolve(*state_->object_, state_->log_.back(), true);
  } catch (...) {
    state_->fail(text_of_thrown(std::current_exception()));
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
  if (loaded()) state_->cluster_changed();
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
  return found == state_->effects_.end() ? nullptr : &found->second.front();
}

void AggregateDriver::finish_effect(std::string_view name, ErrorCode error, std::string_view detail,
                                    Message* answer) {
  MR_ASSERT(state_->effects_.contains(name));
  state_->end_effect(std::string(name), error, std::string(detail), answer);
}

PartitionAggregate& AggregateDriver::aggregate() noexcept {
  MR_ASSERT(loaded());
  return *state_->object_;
}

}  // namespace millrace::testing
