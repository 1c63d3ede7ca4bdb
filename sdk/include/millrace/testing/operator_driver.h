// Runs one stream operator (<millrace/operator.h>) without a broker: feed records, move the time,
// read what comes out. Everything happens inside the calls below:
//
//   auto driver = OperatorDriver::make(factory, {{"window.ms", 60'000}});
//   ASSERT_TRUE(driver) << driver.error().detail;
//   ASSERT_TRUE(driver->feed({.key = "a", .value = "1", .at = 1'000}));
//   EXPECT_EQ(driver->take_outputs(), (std::vector<OperatorOutput>{{.key = "a", .value = "1"}}));
//
// One input partition; of the rules of the runtime it keeps these: timers that are due are called
// before the record that moved the time; a call that fails or throws leaves nothing behind; state,
// timers and time come back after a restart. This header needs the standard library alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/operator.h>
#include <millrace/testing/option_values.h>

namespace millrace::testing {

using HeaderTexts = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// A record to be processed.
struct OperatorInput {
  std::optional<std::string> key = {};
  std::optional<std::string> value = {};
  std::int64_t at = -1;  ///< its timestamp, in ms; below 0: the stream's time
  HeaderTexts headers = {};
};

/// A record that came out.
struct OperatorOutput {
  std::optional<std::string> key = {};
  std::optional<std::string> value = {};
  std::int64_t at = -1;
  HeaderTexts headers = {};
  std::string topic = {};  ///< empty: to the next step
  friend bool operator==(const OperatorOutput&, const OperatorOutput&) = default;
};
/// `key="a" value="1" at=1000 topic=b {"h"="x"}`, as gtest prints it.
void PrintTo(const OperatorOutput& output, std::ostream* out);

/// [one thread]
class OperatorDriver {
 public:
  /// `factory` outlives the driver. `declared` are the options that the plugin's descriptor lists:
  /// their defaults are filled in. The error is that of OperatorFactory::make().
  static Result<OperatorDriver> make(OperatorFactory& factory, OptionValues options = {},
                                     const MillraceOption* declared = nullptr,
                                     TopicPartition source = {"input", 0});
  ~OperatorDriver();
  OperatorDriver(OperatorDriver&&) noexcept;
  OperatorDriver& operator=(OperatorDriver&&) noexcept;

  /// Timers that are due, then the record. The error is the operator's, or that of a timer, which
  /// is gone then, and the record was not processed; what it threw is Errc::internal.
  Result<> feed(const OperatorInput& record);
  /// The time that a record at `ms` would bring; timers that are due are called.
  Result<> advance_to(std::int64_t ms);
  Result<> advance_by(Duration by);
  Timestamp stream_time() const noexcept;

  /// Those since the last call.
  std::vector<OperatorOutput> take_outputs();
  const std::map<std::string, std::string, std::less<>>& state() const noexcept;
  /// When each is due, in ms.
  const std::map<std::string, std::int64_t, std::less<>>& timers() const noexcept;
  /// What Emitter::pause() came to since the last call.
  Duration take_pause() noexcept;
  /// What it logged, each as "warning test: text field=value".
  std::vector<std::string> log_lines() const;

  /// A new operator takes the place of the old one: state, timers and time are what they were.
  void restart();

  struct Checkpoint {
    std::map<std::string, std::string, std::less<>> state;
    std::map<std::string, std::int64_t, std::less<>> timers;
    Timestamp stream_time;
    Offset next;
    friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
  };
  /// What the runtime commits. A crash goes back to the last one, and the records behind it come
  /// again: their outputs have perhaps been written.
  Checkpoint checkpoint() const;
  void crash(const Checkpoint& committed);

  /// The call number `calls` from now (1: the next) of the emitter or the state throws, as it does
  /// when the stream's memory is used up: that call can be made again, by feeding the same record.
  /// 0: none does.
  void throw_at(std::size_t calls) noexcept;

 private:
  class State;
  explicit OperatorDriver(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace millrace::testing
