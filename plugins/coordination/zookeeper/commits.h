// Writes, all or nothing and exactly once, over a connection that may be lost at any moment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/coordination.h>

#include "commit_plan.h"
#include "session.h"

namespace millrace::zookeeper {

/// A commit is one multi: what is too large for one is refused. The first step of each writes the
/// session's mark, a znode of ours alone, whose version so counts our commits: when the connection
/// is lost before the answer came, the mark says whether the multi was done, and one that arrives
/// late after all is refused for the mark's sake. Every other step names the version that the plan
/// was made for; when another broker was faster, a new plan is made.  [control thread]
class Commits {
 public:
  /// `mark`: the path of an ephemeral znode of this session, at version 0.
  Commits(std::shared_ptr<Session> session, std::string mark, std::string mark_value)
      : session_(std::move(session)), mark_(std::move(mark)), mark_value_(std::move(mark_value)) {}

  /// Coordination::commit. `self` keeps this alive.
  static Task<std::vector<Version>> commit(std::shared_ptr<Commits> self,
                                           std::vector<Write> writes);

 private:
  Task<KnownNodes> learn(const std::vector<Write>& writes);
  Task<> learn_more(std::vector<std::string> paths, KnownNodes& known);
  Task<bool> attempt(std::vector<Op> ops);
  Task<> read_mark();
  Task<> sync();
  Error refused(const Answer& answer, const std::vector<Op>& ops) const;

  std::shared_ptr<Session> session_;
  std::string mark_;
  std::string mark_value_;
  std::int32_t mark_version_ = 0;
  Mutex committing_;
};

}  // namespace millrace::zookeeper
