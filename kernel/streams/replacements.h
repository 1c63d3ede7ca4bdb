// What one broker is asked to replace is replaced at all of them. It does so itself, and then asks
// the others through coordination: what they load is named by nobody else.
//
//   /millrace/replacements/wanted   {"version":1,"broker":1,"id":…,"name":…,"step":…,"file":…,
//                                   "content":…}, without step: an aggregate; without id: broker 1
//                                   is not so far. Ephemeral, as is
//   /millrace/replaced/BROKER       {"version":1,"id":…,"refused":…}, its last answer
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/replacements.h>
#include <millrace/shard.h>

namespace millrace::kernel {

struct Replacement {
  std::string name;                 ///< of the stream, or of the aggregate
  std::optional<std::string> step;  ///< none: an aggregate
  std::string file;
};

/// What a broker does for itself.
struct LocalReplacements {
  /// The same for the same bytes.  [a worker]
  std::function<Result<std::string>(const std::string& file)> content;
  // [control thread]
  std::function<Task<>(const Replacement& wanted)> replace;
  /// What replaces operators of this stream is at every broker: restarts begin with it.
  std::function<Task<>(const std::string& stream)> remember;
};

class ReplacementService final : public Replacements {
 public:
  /// All outlive it.
  ReplacementService(Environment& environment, Coordination& coordination, LogSink& log,
                     std::int32_t broker, LocalReplacements local);

  /// Does what other brokers are asked for from now on.  [control thread]
  void open();
  /// What has begun here is brought to its end; others are not waited for.  [control thread]
  Task<> close();

  Task<std::vector<ReplacedAt>> replace_operator(std::string stream, std::string step,
                                                 std::string file) override;
  Task<std::vector<ReplacedAt>> replace_aggregate(std::string aggregate, std::string file) override;

 private:
  /// As it stands in coordination.
  struct Wanted {
    std::int32_t broker = -1;
    std::string id;
    Replacement replacement;
    std::string content;
  };
  struct Answer {
    std::string id;
    std::string refused;
  };
  using Brokers = std::set<std::int32_t>;

  static std::string encode(const Wanted& wanted);
  static Result<Wanted> decode_wanted(std::string_view text);
  static std::string encode(const Answer& answer);
  static Result<Answer> decode_answer(std::string_view text);

  // [control thread]
  Task<std::vector<ReplacedAt>> replace_everywhere(Replacement replacement);
  Task<std::vector<ReplacedAt>> replace_in_turn(Replacement replacement);
  Task<std::vector<ReplacedAt>> replace_from_here(Replacement replacement, Brokers others);
  Task<> replace_here(Replacement replacement);
  Task<std::string> content_of(std::string file);
  Task<Brokers> brokers();
  Task<> claim();
  Task<> withdraw();
  Task<> ask(Replacement replacement, Brokers& waiting, std::vector<ReplacedAt>& told);
  Task<> hear(std::string id, Brokers& waiting, std::vector<ReplacedAt>& told);
  Task<> put(std::string_view key, std::string value, Version expected);
  Task<> follow();
  Task<> answer();
  Task<> do_as_asked(Wanted wanted);

  Environment& environment_;
  Coordination& coordination_;
  Log log_;
  std::int32_t broker_;
  LocalReplacements local_;
  // [control thread]
  Mutex asking_;     // one after the other
  Answer answered_;  // what this broker was asked for last
  CancelScope scope_;
  Gate running_;
};

}  // namespace millrace::kernel
