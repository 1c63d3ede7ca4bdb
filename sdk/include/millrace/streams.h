// Streams as they are declared, watched and changed: what [stream.NAME] of the configuration and
// /admin/streams say, and how a transport calls the kernel's runtime of stream operators
// (<millrace/operator.h>).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/options.h>
#include <millrace/task.h>
#include <millrace/types.h>

namespace millrace {

struct StreamStep {
  /// Its own within the stream; the step's state is kept under it. Empty: that of the operator.
  std::string name;
  std::string plugin;  ///< NAME of operators/NAME.so
  std::map<std::string, OptionValue, std::less<>> options;
  /// The plugin file that has taken the operator's place; empty: that of the plugin folders.
  std::string file;
};

struct StreamSpec {
  std::string name;
  /// Partition N of all of them is one task, which sees each partition's records in their order.
  std::vector<std::string> sources;
  std::vector<StreamStep> steps;
  std::string sink;  ///< topic of what the last step emits; empty: only what names its own topic
  std::string guarantee = "at-least-once";
  std::string from = "earliest";  ///< or "latest": where a stream begins that has no position yet
  std::string on_error = "stop";  ///< or "skip", "dead-letter"
  std::string dead_letter;        ///< topic of records that failed
  std::int64_t memory_bytes = 268'435'456;  ///< state and pending output, all tasks together
  std::int64_t timeout_ms = 30'000;         ///< of one call of an operator
};

struct StreamStepFact {
  std::string name;
  std::string plugin;
  std::string id;
  std::string version;
  std::string path;
  // since this broker has started
  std::uint64_t records_in = 0;
  std::uint64_t records_out = 0;
  std::uint64_t errors = 0;
  std::uint64_t nanoseconds = 0;  ///< in its calls, from samples
  std::uint64_t state_entries = 0;
};

struct StreamSourceFact {
  std::string topic;
  Offset position;        ///< the next record to be processed; none: not known yet
  std::int64_t lag = -1;  ///< records behind the last stable offset; -1: not known yet
};

struct StreamTaskFact {
  std::int32_t partition = -1;
  std::string state;  ///< restoring, running, retrying, ended
  std::string reason;
  std::vector<StreamSourceFact> sources;
  std::uint64_t state_bytes = 0;
  std::uint64_t state_restored_records = 0;
  std::int64_t restore_ms = -1;
};

struct StreamFact {
  StreamSpec spec;
  std::string declared_in;  ///< "FILE:LINE:COLUMN"; "admin": over the admin API
  std::string state;        ///< waiting, running, stopped, failed
  std::string reason;       ///< what it waits for, or why it has failed
  std::vector<StreamStepFact> steps;
  std::vector<StreamTaskFact> tasks;
};

/// Broker::service<Streams>(). Implemented by the kernel. Errc::not_found: there is no such stream;
/// Errc::invalid_argument: what was asked for cannot be, and why; Errc::conflict: not now.
/// [a data shard]
class Streams {
 public:
  static constexpr std::string_view service_id = "millrace.streams/1";

  virtual ~Streams() = default;
  /// Sorted by name.
  virtual Task<std::vector<StreamFact>> list() = 0;
  virtual Task<StreamFact> describe(std::string name) = 0;
  /// Kept in coordination, and started. What the configuration declares wins over one of that name.
  virtual Task<> create(StreamSpec spec) = 0;
  /// Ends it and forgets its declaration, its state and its positions: a stream made anew under
  /// this name begins anew. Errc::conflict: it is stopped, and its changelog cannot be deleted.
  virtual Task<> remove(std::string name) = 0;
  /// Stays so after a restart of the broker. Completes when the last batch is committed.
  virtual Task<> stop(std::string name) = 0;
  /// Also one that has failed.
  virtual Task<> start(std::string name) = 0;
  /// The operator of `step` goes on as what `file` holds, from the committed position, with the
  /// state that it has; at this broker alone: see <millrace/replacements.h>.
  virtual Task<> replace(std::string name, std::string step, std::string file) = 0;
  /// Ends it and forgets its declaration. Its changelog topic stays: a stream made anew under this
  /// name goes on from there.
  virtual Task<> remove_but_state(std::string name) = 0;
  /// As start(); the record that the stream has failed on is passed over. Errc::conflict: it has
  /// not failed on a record.
  virtual Task<> start_behind_failed(std::string name) = 0;
};

}  // namespace millrace
