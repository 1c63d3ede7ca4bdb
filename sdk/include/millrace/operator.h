// A stream operator: records in, records out, with state by key and timers. This header needs the
// standard library alone; an operator may be built by any compiler with the Itanium C++ ABI.
//
// One object per step of a stream and partition number, on a worker: records of partition N of all
// of the stream's sources come to it. Its calls never overlap, and records of a partition come in
// offset order. Same input and state, same output: an operator asks
// neither the clock nor chance, and keeps nothing between calls but what it can make again: what
// must be remembered is in the keyed state, which comes back exactly after any crash.
//
// Guarantee: state and input position change together, in one append. Outputs may repeat after a
// crash (at least once).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/observe.h>
#include <millrace/options.h>
#include <millrace/record.h>
#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace {

/// What an operator sends on. Views need to live during the call alone.
struct OutputRecord {
  std::optional<Bytes> key;
  std::optional<Bytes> value;
  Timestamp timestamp;  ///< none: that of the record being processed
  std::span<const HeaderView> headers;
  /// Where to, past the remaining steps and the stream's sink; empty: the next step.
  std::string_view topic;
};

/// State by key of one step and partition number; counted against the stream's memory budget: what
/// exceeds it ends the call with an exception (std::length_error), and the stream.
class KeyedState {
 public:
  virtual ~KeyedState() = default;
  /// The value as of the calls before and this one; valid until the next put() or erase().
  virtual std::optional<Bytes> get(Bytes key) const = 0;
  virtual void put(Bytes key, Bytes value) = 0;
  virtual void erase(Bytes key) = 0;
  /// In no particular order, until `each` answers false; it must not change the state.
  virtual void for_each(const std::function<bool(Bytes key, Bytes value)>& each) const = 0;
  virtual std::size_t size() const noexcept = 0;
};

/// The runtime, for the length of one call.
class Emitter {
 public:
  virtual ~Emitter() = default;
  virtual void emit(const OutputRecord& record) = 0;
  virtual KeyedState& state() noexcept = 0;
  /// Operator::timer(name) is called once stream time has reached `at`, before the record is
  /// processed that moved it there; replaces one of the same name. For a time that is reached
  /// already it is called before the next record. Timers are state: they survive a crash.
  virtual void set_timer(Bytes name, Timestamp at) = 0;
  virtual void cancel_timer(Bytes name) = 0;
  /// The largest timestamp that the records of this partition number have had so far.
  virtual Timestamp stream_time() const noexcept = 0;
  /// Where the record being processed comes from.
  virtual const TopicPartition& source() const noexcept = 0;
  /// The next record of this partition is processed that much later, by the broker's clock; those
  /// of several calls add up. It changes when something comes out, never what: a driver or a
  /// runtime may ignore it.
  virtual void pause(Duration /*by*/) {}
};

/// [a worker]
class Operator {
 public:
  virtual ~Operator() = default;
  /// `input` is valid during the call. An error, or what it throws, is a failure of this record:
  /// nothing of the call counts, and the stream's error policy says how it goes on.
  virtual Result<> process(const RecordView& input, Emitter& out) = 0;
  virtual Result<> timer(Bytes /*name*/, Emitter& /*out*/) { return {}; }
};

/// What one step of one stream is made from.
struct OperatorSetup {
  /// The step's options: declared by the plugin's descriptor, checked, defaults filled in.
  const Options& options;
  const Log& log;
};

/// What a plugin of kind `operators` registers for stream operators; a step names it by the
/// plugin's name.
class OperatorFactory {
 public:
  virtual ~OperatorFactory() = default;
  /// Once per step and input partition. An error says what is wrong with the options, beyond what
  /// their declaration can say; it is asked for once when the stream is declared.  [any thread]
  virtual Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) = 0;
};

/// Offered by a plugin of kind `operators` as its extension `extension_id`: where its operators
/// send records past the stream's sink, as far as options say it. A topic that cannot be written to
/// is then refused when the stream is declared; else it ends the stream once a record goes there.
class OperatorTopics {
 public:
  static constexpr std::string_view extension_id = "millrace.operators.topics/1";

  virtual ~OperatorTopics() = default;
  /// `options` as they are for OperatorFactory::make, which has taken them.  [a worker]
  virtual Result<std::vector<std::string>> topics(const Options& options) const = 0;
};

}  // namespace millrace
