// The writes of one controller: each commit also writes /controller_epoch, at the version that the
// controller has left it. Once another broker is the controller nothing more of ours is written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <millrace/coordination.h>
#include <millrace/shard.h>

namespace millrace::kernel {

/// Whether it says that this controller is none any more: its session is over, another one has the
/// epoch, or somebody else has changed what it knows, which only who begins anew reads. Whatever
/// else keeps something from being written may pass; it is tried again.
bool ends_term(const Error& error) noexcept;

/// Reads pass through. Commits are made one after the other; Errc::conflict on
/// znodes::controller_epoch says that there is another controller.  [control thread]
class FencedWrites final : public Coordination {
 public:
  /// `under` outlives it. `version`: of the epoch's key, since we have written it.
  FencedWrites(Coordination& under, std::int32_t epoch, Version version)
      : under_(under), epoch_(epoch), version_(version) {}

  Task<std::unique_ptr<Lease>> join(Member self) override { return under_.join(self); }
  Task<Versioned> get(std::string key) override { return under_.get(std::move(key)); }
  Task<std::vector<std::string>> list(std::string prefix) override {
    return under_.list(std::move(prefix));
  }
  Task<std::vector<Version>> commit(std::vector<Write> writes) override;
  /// In as few commits as may be. What cannot be written for now holds up only its own group:
  /// answers the versions, or why not, of each. Errors end the term.
  using Groups = std::vector<std::vector<Write>>;
  using GroupsDone = std::vector<Result<std::vector<Version>>>;
  Task<GroupsDone> commit_groups(Groups groups);
  /// Ends commits that wait, and refuses further ones: whether one was made is not known then.
  void stop() noexcept {
    stopped_ = true;
    if (running_) running_->cancel();
  }
  /// Takes the controller's key away, so that another can be elected at once. May be called after
  /// stop().
  Task<> give_up(Duration limit);
  Task<Seen> next_change(std::string prefix, Seen seen) override {
    return under_.next_change(std::move(prefix), seen);
  }

 private:
  Task<GroupsDone> commit_one_by_one(Groups groups);

  Coordination& under_;
  std::int32_t epoch_;
  Version version_;
  Mutex one_at_a_time_;
  CancelScope* running_ = nullptr;  // of the commit that waits
  bool stopped_ = false;
};

}  // namespace millrace::kernel
