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

 private:
  std::map<IdKind, std::map<std::string, std::string>> live_;
  std::map<IdKind, std::map<std::string, std::string>> recorded_;
};

}  // namespace millrace::wire
