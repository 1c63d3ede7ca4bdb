#include <millrace/testing/operator_driver.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <ostream>
#include <ranges>
#include <stdexcept>

#include <millrace/testing/kept_log.h>

namespace millrace::testing {

namespace {

std::optional<std::string> text_of(std::optional<Bytes> bytes) {
  if (!bytes) return std::nullopt;
  return std::string(as_text(*bytes));
}

std::optional<Bytes> bytes_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return as_bytes(*text);
}

void print(std::ostream& out, std::string_view name, const std::optional<std::string>& text) {
  out << name << '=';
  if (text) {
    out << '"' << *text << '"';
  } else {
    out << "none";
  }
}

}  // namespace

void PrintTo(const OperatorOutput& output, std::ostream* out) {
  print(*out, "key", output.key);
  print(*out, " value", output.value);
  *out << " at=" << output.at;
  if (!output.topic.empty()) *out << " topic=" << output.topic;
  for (const auto& [key, value] : output.headers) print(*out, " {" + key + "}", value);
}

class OperatorDriver::State {
 public:
  State(OperatorFactory& factory, OptionValues options, TopicPartition source)
      : factory_(factory), options_(std::move(options)), source_(std::move(source)) {}

  Result<> make_operator() {
    MR_TRY(object_, factory_.make(OperatorSetup{options_, log_}));
    MR_ASSERT(object_ != nullptr);
    return {};
  }

  class Step;
  Result<> run(Timestamp record_time, const std::function<Result<>(Emitter&)>& call);
  Result<> fire_timers();
  Result<> feed(const OperatorInput& record);
  Result<> move_to(Timestamp time) {
    stream_time_ = std::max(stream_time_, time);
    return fire_timers();
  }

  OperatorFactory& factory_;
  Options options_;
  TopicPartition source_;
  KeptLog kept_log_;
  Log log_{kept_log_, "test"};
  std::unique_ptr<Operator> object_;

  std::map<std::string, std::string, std::less<>> state_;
  std::map<std::string, std::int64_t, std::less<>> timers_;
  Timestamp stream_time_;
  Offset next_{0};
  std::vector<OperatorOutput> outputs_;
  Duration pause_{};
  std::size_t throw_at_ = 0;
  bool cut_short_ = false;  // the last call ended by throw_at_
};

// The runtime during one call. A call that fails takes back what it has changed.
class OperatorDriver::State::Step final : public Emitter, public KeyedState {
 public:
  Step(State& driver, Timestamp record_time) : driver_(driver), record_time_(record_time) {}

  void undo() {
    for (auto& [key, before] : std::views::reverse(state_before_)) {
      put_back(driver_.state_, std::move(key), std::move(before));
    }
    for (auto& [name, before] : std::views::reverse(timers_before_)) {
      put_back(driver_.timers_, std::move(name), before);
    }
  }

  void emit(const OutputRecord& record) override {
    count();
    OperatorOutput output;
    output.key = text_of(record.key);
    output.value = text_of(record.value);
    output.at = (record.timestamp == Timestamp{} ? record_time_ : record.timestamp).ms;
    for (const auto& header : record.headers) {
      output.headers.emplace_back(header.key, text_of(header.value));
    }
    output.topic = record.topic;
    outputs.push_back(std::move(output));
  }
  KeyedState& state() noexcept override { return *this; }
  void set_timer(Bytes name, Timestamp at) override {
    count();
    std::string text(as_text(name));
    save(driver_.timers_, timers_before_, text);
    driver_.timers_.insert_or_assign(std::move(text), at.ms);
  }
  void cancel_timer(Bytes name) override {
    const std::string text(as_text(name));
    save(driver_.timers_, timers_before_, text);
    driver_.timers_.erase(text);
  }
  Timestamp stream_time() const noexcept override { return driver_.stream_time_; }
  const TopicPartition& source() const noexcept override { return driver_.source_; }
  void pause(Duration by) override { paused += by; }

  std::optional<Bytes> get(Bytes key) const override {
    const auto found = driver_.state_.find(as_text(key));
    if (found == driver_.state_.end()) return std::nullopt;
    // A copy of its own, gone with the next change: a sanitizer tells who keeps the view.
    return as_bytes(*shown_.emplace_back(std::make_unique<std::string>(found->second)));
  }
  void put(Bytes key, Bytes value) override {
    count();
    std::string text(as_text(key));
    std::string kept(as_text(value));
    save(driver_.state_, state_before_, text);
    driver_.state_.insert_or_assign(std::move(text), std::move(kept));
    shown_.clear();
  }
  void erase(Bytes key) override {
    const std::string text(as_text(key));
    save(driver_.state_, state_before_, text);
    driver_.state_.erase(text);
    shown_.clear();
  }
  void for_each(const std::function<bool(Bytes key, Bytes value)>& each) const override {
    for (const auto& [key, value] : driver_.state_) {
      if (!each(as_bytes(key), as_bytes(value))) return;
    }
  }
  std::size_t size() const noexcept override { return driver_.state_.size(); }

  std::vector<OperatorOutput> outputs;
  Duration paused{};

 private:
  template <class T>
  using Texts = std::map<std::string, T, std::less<>>;
  template <class T>
  using Saved = std::vector<std::pair<std::string, std::optional<T>>>;

  template <class T>
  static void save(const Texts<T>& values, Saved<T>& saved, const std::string& key) {
    const auto found = values.find(key);
    saved.emplace_back(key, found == values.end() ? std::nullopt : std::optional(found->second));
  }
  template <class T>
  static void put_back(Texts<T>& values, std::string key, std::optional<T> before) {
    if (before) {
      values.insert_or_assign(std::move(key), *std::move(before));
    } else {
      values.erase(key);
    }
  }
  void count() {
    if (driver_.throw_at_ == 0) return;
    --driver_.throw_at_;
    if (driver_.throw_at_ > 0) return;
    driver_.cut_short_ = true;
    throw std::length_error("the stream's memory is used up");
  }

  State& driver_;
  Timestamp record_time_;
  Saved<std::string> state_before_;
  Saved<std::int64_t> timers_before_;
  mutable std::vector<std::unique_ptr<std::string>> shown_;
};

Result<> OperatorDriver::State::run(Timestamp record_time,
                                    const std::function<Result<>(Emitter&)>& call) {
  Step step(*this, record_time);
  cut_short_ = false;
  Result<> done;
  try {
    done = call(step);
  } catch (const std::exception& thrown) {
    done = Error{Errc::internal, "it threw: " + std::string(thrown.what())};
  } catch (...) {
    done = Error{Errc::internal, "it threw something that is not a std::exception"};
  }
  if (!done) {
    step.undo();
    return done;
  }
  std::ranges::move(step.outputs, std::back_inserter(outputs_));
  pause_ += step.paused;
  return {};
}

Result<> OperatorDriver::State::fire_timers() {
  std::vector<std::pair<std::int64_t, std::string>> due;
  for (const auto& [name, at] : timers_) {
    if (at <= stream_time_.ms) due.emplace_back(at, name);
  }
  std::ranges::sort(due);
  for (const auto& [at, name] : due) {
    const auto found = timers_.find(name);
    if (found == timers_.end() || found->second != at) continue;  // moved or cancelled meanwhile
    timers_.erase(found);
    auto called = run({at}, [&](Emitter& out) { return object_->timer(as_bytes(name), out); });
    if (!called && cut_short_) timers_.emplace(name, at);
    MR_CHECK(called);
  }
  return {};
}

Result<> OperatorDriver::State::feed(const OperatorInput& record) {
  const Timestamp time = record.at < 0 ? stream_time_ : Timestamp{record.at};
  MR_CHECK(move_to(time));
  RecordView view;
  view.offset = next_;
  view.timestamp = time;
  // Copies that end with the call: a sanitizer tells who keeps a view.
  const auto copy = std::make_unique<OperatorInput>(record);
  view.key = bytes_of(copy->key);
  view.value = bytes_of(copy->value);
  for (const auto& [key, value] : copy->headers) view.headers.push_back({key, bytes_of(value)});
  auto processed = run(time, [&](Emitter& out) { return object_->process(view, out); });
  if (!cut_short_) next_ = next_ + 1;
  return processed;
}

// ---- OperatorDriver ----

Result<OperatorDriver> OperatorDriver::make(OperatorFactory& factory, OptionValues options,
                                            const MillraceOption* declared, TopicPartition source) {
  if (declared != nullptr) options.merge(defaults_of(declared));
  auto state = std::make_unique<State>(factory, std::move(options), std::move(source));
  MR_CHECK(state->make_operator());
  return OperatorDriver(std::move(state));
}

OperatorDriver::OperatorDriver(std::unique_ptr<State> state) : state_(std::move(state)) {}
OperatorDriver::~OperatorDriver() = default;
OperatorDriver::OperatorDriver(OperatorDriver&&) noexcept = default;
OperatorDriver& OperatorDriver::operator=(OperatorDriver&&) noexcept = default;

Result<> OperatorDriver::feed(const OperatorInput& record) { return state_->feed(record); }
Result<> OperatorDriver::advance_to(std::int64_t ms) { return state_->move_to({ms}); }
Result<> OperatorDriver::advance_by(Duration by) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(by).count();
  return state_->move_to({state_->stream_time_.ms + ms});
}
Timestamp OperatorDriver::stream_time() const noexcept { return state_->stream_time_; }

std::vector<OperatorOutput> OperatorDriver::take_outputs() {
  return std::exchange(state_->outputs_, {});
}
const std::map<std::string, std::string, std::less<>>& OperatorDriver::state() const noexcept {
  return state_->state_;
}
const std::map<std::string, std::int64_t, std::less<>>& OperatorDriver::timers() const noexcept {
  return state_->timers_;
}
Duration OperatorDriver::take_pause() noexcept { return std::exchange(state_->pause_, {}); }
std::vector<std::string> OperatorDriver::log_lines() const { return state_->kept_log_.lines(); }

void OperatorDriver::restart() {
  state_->object_.reset();
  const auto made = state_->make_operator();
  MR_ASSERT(made);  // the same options were right before
}

OperatorDriver::Checkpoint OperatorDriver::checkpoint() const {
  return {state_->state_, state_->timers_, state_->stream_time_, state_->next_};
}

void OperatorDriver::crash(const Checkpoint& committed) {
  state_->state_ = committed.state;
  state_->timers_ = committed.timers;
  state_->stream_time_ = committed.stream_time;
  state_->next_ = committed.next;
  restart();
}

void OperatorDriver::throw_at(std::size_t calls) noexcept { state_->throw_at_ = calls; }

}  // namespace millrace::testing
