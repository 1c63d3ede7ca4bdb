// Ids that belong to one run: what the recorded broker gave out, and what the live one gave in its
// place. Learned where answers are compared, used where later requests name them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/types.h>

namespace millrace::wire {

enum class IdKind { topic, producer, fetch_session, member, cluster };

class Bindings {
 public:
  /// What an id field of an answer is, by its name in JSON; none: it is no id.
  static std::optional<IdKind> kind_of(std::string_view field);

  /// The two stand at the same place of an answer. False when they cannot mean the same: one is
  /// "none" and the other is not, or either already stands for something else.
  bool bind(IdKind kind, const std::string& recorded, const std::string& live);

  /// What to send in place of `recorded`; itself where nothing was learned.
  std::string live(IdKind kind, const std::string& recorded) const;

  /// As bind(), of a group's generations and epochs: these also come in the same order. None up to
  /// 0, which say something of their own, is another.
  bool bind_epoch(const std::string& group, std::int64_t recorded, std::int64_t live);
  std::int64_t live_epoch(const std::string& group, std::int64_t recorded) const;

 private:
  std::map<std::string, std::map<std::int64_t, std::int64_t>> epochs_;  // by group
  std::map<IdKind, std::map<std::string, std::string>> live_;
  std::map<IdKind, std::map<std::string, std::string>> recorded_;
};

}  // namespace millrace::wire
