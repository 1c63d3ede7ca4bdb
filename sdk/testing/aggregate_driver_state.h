// What AggregateDriver does around an aggregate.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/testing/aggregate_driver.h>

namespace millrace::testing {

class AggregateDriver::State {
 public:
  State(AggregateFactory& factory, Settings settings)
      : factory_(factory),
        settings_(std::move(settings)),
        wall_(settings_.wall),
        ids_(settings_.seed) {}

  // What one call asked for, until it has returned.
  class Step;

  enum class Ended { well, not_appended, failed };
  Ended run(const std::function<void(Context&)>& call);
  Ended commit(Step& step);
  Ended append(Step& step);
  void decide(std::string_view key, Message& body, ReplyTo reply_to);
  void cluster_changed();
  void end_effect(const std::string& name, ErrorCode error, const std::string& detail,
                  Message* answer);
  // Tells it later, unless it is dropped before.
  void later(std::function<void()> body);
  void refuse_all(const Step& step, ErrorCode error, const std::string& detail);
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
  struct Retry {
    MonoTime due;
    std::function<void()> body;
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
  std::deque<Retry> retries_;  // in order, for they all wait as long

  std::uint64_t tokens_ = 0;
  std::map<ReplyTo, Answer> answers_;
  std::set<ReplyTo> waiting_;
  std::vector<Held> held_;
  std::map<std::string, std::deque<Effect>, std::less<>> effects_;  // by name; the first runs

  std::string failure_;
  std::size_t failures_ = 0;
  DriverCluster cluster_;
  std::map<std::string, std::string, std::less<>> given_;
  std::mt19937_64 ids_;
};

/// The text of what was thrown.
std::string text_of_thrown(std::exception_ptr thrown);

}  // namespace millrace::testing
