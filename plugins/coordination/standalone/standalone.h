// Coordination for a cluster of one broker; see README.md.
#pragma once

#include <memory>
#include <string>

#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>

#include "journal.h"
#include "tree.h"

namespace millrace::standalone {

/// The file is opened, and locked, by join(): before it every other call is Errc::closed, so that a
/// second process on the same folder does no harm.  [control thread]
class Standalone final : public Coordination {
 public:
  /// `folder` is made when missing.
  Standalone(Environment& environment, Log log, std::string folder)
      : environment_(environment), log_(std::move(log)), folder_(std::move(folder)) {}

  Task<std::unique_ptr<Lease>> join(Member self) override;
  Task<Versioned> get(std::string key) override;
  Task<std::vector<std::string>> list(std::string prefix) override;
  Task<std::vector<Version>> commit(std::vector<Write> writes) override;
  Task<Seen> next_change(std::string prefix, Seen seen) override;

 private:
  Result<> open();
  Result<> check_open() const;
  Result<> check_broker(Member self) const;
  Task<> write(std::vector<Change> changes);
  Task<> shrink();

  Environment& environment_;
  Log log_;
  std::string folder_;
  std::unique_ptr<FileSystem::Lock> lock_;
  std::unique_ptr<Journal> journal_;
  Tree tree_;
  Mutex writing_;
  Event changed_;
};

}  // namespace millrace::standalone
