// An environment of one shard for the tests of a partition: it runs when told to, its clock moves
// when told to, and its workers are jobs of the same thread.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/observe.h>

namespace millrace::kernel::testing {

class TestShard final : public Shard {
 public:
  unsigned index() const noexcept override { return 0; }
  MonoTime now() const noexcept override { return now_; }
  bool is_current() const noexcept override { return true; }
  void post(Job job) override { jobs_.push_back(std::move(job)); }
  void resume_soon(std::coroutine_handle<> waiting) override {
    jobs_.push_back([waiting] { waiting.resume(); });
  }
  TimerId schedule(MonoTime when, Job job) override {
    const TimerId id{++timers_made_};
    timers_.emplace(std::pair(when, id), std::move(job));
    return id;
  }
  void unschedule(TimerId timer) noexcept override {
    std::erase_if(timers_, [timer](const auto& entry) { return entry.first.second == timer; });
  }
  void report(std::string_view task, const Error& error) noexcept override {
    reported_.push_back(std::string(task) + ": " + to_string(error));
  }

  /// Runs one job; false when there is none.
  bool step() {
    if (jobs_.empty()) return false;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
    return true;
  }
  /// Moves the clock and fires what is due.
  void advance(Duration by) {
    now_ += by;
    while (!timers_.empty() && timers_.begin()->first.first <= now_) {
      auto due = timers_.extract(timers_.begin());
      due.mapped()();
    }
  }
  const std::vector<std::string>& reported() const noexcept { return reported_; }

 private:
  MonoTime now_{};
  std::deque<Job> jobs_;
  std::map<std::pair<MonoTime, TimerId>, Job> timers_;
  std::uint64_t timers_made_ = 0;
  std::vector<std::string> reported_;
};

class TestEnvironment final : public Environment, Clock, BlockingPool {
 public:
  Clock& clock() noexcept override { return *this; }
  Random& random() noexcept override { std::abort(); }
  Network& network() noexcept override { std::abort(); }
  FileSystem& files() noexcept override { std::abort(); }
  BlockingPool& workers() noexcept override { return *this; }
  std::span<Shard* const> shards() noexcept override { return shards_; }
  Shard& control() noexcept override { return shard_; }

  TestShard& shard() noexcept { return shard_; }
  /// Jobs and workers until nothing is left to do.
  void run() {
    while (shard_.step() || work()) {
    }
  }
  void advance(Duration by) {
    wall_.ms += by / std::chrono::milliseconds(1);
    shard_.advance(by);
    run();
  }
  Timestamp wall_now() const noexcept { return wall_; }
  void set_wall(Timestamp wall) noexcept { wall_ = wall; }
  /// Workers take the newest job first: preparation then ends in another order than it began.
  void run_newest_work_first() noexcept { newest_first_ = true; }

 private:
  MonoTime now() const noexcept override { return shard_.now(); }
  Timestamp wall() const noexcept override { return wall_; }
  void submit(Job job) override { work_.push_back(std::move(job)); }
  bool work() {
    if (work_.empty()) return false;
    auto job = std::move(newest_first_ ? work_.back() : work_.front());
    newest_first_ ? work_.pop_back() : work_.pop_front();
    job();
    return true;
  }

  TestShard shard_;
  Shard* shards_[1] = {&shard_};
  Timestamp wall_{1'700'000'000'000};
  std::deque<Job> work_;
  bool newest_first_ = false;
};

/// Keeps the lines of a log.
class TestLog final : public LogSink {
 public:
  bool wants(LogLevel, std::string_view) const noexcept override { return true; }
  void write(LogLevel level, std::string_view, std::string_view message,
             std::initializer_list<LogField> with) noexcept override {
    lines.push_back(std::string(name_of(level)) + ": " + std::string(message));
    auto& text = fields.emplace_back();
    for (const auto& field : with) text.append(field.name).append("=").append(field.value) += ' ';
  }
  std::vector<std::string> lines;
  std::vector<std::string> fields;  // of each line: "partition=orders-3 from=7 "
};

}  // namespace millrace::kernel::testing
