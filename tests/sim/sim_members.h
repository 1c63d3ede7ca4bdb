// Members of consumer groups on a simulated machine, each with a connection of its own: they join,
// beat, commit and give up as real clients do, and whatever they are told is looked at.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <millrace/error_code.h>
#include <millrace/kafka/client.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::testing {

/// The topic that all read.
struct SimTopic {
  std::string name;
  Uuid id;
  std::int32_t partitions = 0;
};

/// What all members have seen together.
class GroupsSeen {
 public:
  /// In one generation, or epoch, a partition has one owner.
  void owns(const std::string& group, std::int32_t generation, std::int32_t partition,
            const std::string& member);
  /// Offsets grow, so that a later commit is known by its number.
  std::int64_t next_offset() noexcept { return ++offset_; }
  void sent(const std::string& group, std::int32_t partition, std::int64_t offset);
  /// Answered without an error.
  void acknowledged(const std::string& group, std::int32_t partition, std::int64_t offset);
  void refused(const std::string& group, std::int32_t partition, std::int64_t offset);
  /// What the broker says at the end; -1 where it has none.
  void check(const std::string& group, std::int32_t partition, std::int64_t offset);

  std::size_t commits() const noexcept { return acknowledged_count_; }
  const std::vector<std::string>& faults() const noexcept { return faults_; }

 private:
  using Place = std::pair<std::string, std::int32_t>;
  struct Commits {
    std::int64_t acknowledged = -1;
    std::set<std::int64_t> possible;  ///< may have been kept: their answers did not come
  };
  std::map<std::tuple<std::string, std::int32_t, std::int32_t>, std::string> owners_;
  std::map<Place, Commits> commits_;
  std::int64_t offset_ = 0;
  std::size_t acknowledged_count_ = 0;
  std::vector<std::string> faults_;
};

/// [the client's shard]
class SimMember {
 public:
  struct Parts {
    SimEnvironment& home;
    SimRandom& random;
    GroupsSeen& seen;
    const SimTopic& topic;
  };
  SimMember(Parts parts, std::string group, std::string name);
  virtual ~SimMember() = default;

  /// Until die() or leave(); outlived by this.
  Task<> live();
  /// Without a word: the group finds out when its session is over.
  void die() noexcept { ending_ = true; }
  void leave() noexcept { ending_ = leaving_ = true; }
  bool has_ended() const noexcept { return ended_; }

  const std::string& group() const noexcept { return group_; }
  /// Where it reads now.
  const std::set<std::int32_t>& owned() const noexcept { return owned_; }

 protected:
  /// The next request, and what its answer makes of it. An error: it asks again soon.
  virtual Task<> step() = 0;
  virtual Task<> say_goodbye() = 0;
  virtual std::int32_t generation() const noexcept = 0;

  template <class Request>
  Task<typename Request::Response> call(Request request);
  /// Of one of its partitions.
  Task<ErrorCode> commit_one();

  Parts parts_;
  const std::string group_;
  const std::string name_;
  std::string id_;
  std::set<std::int32_t> owned_;

 private:
  std::unique_ptr<kafka::Client> client_;
  bool ending_ = false;
  bool leaving_ = false;
  bool ended_ = false;
};

std::unique_ptr<SimMember> make_classic_member(SimMember::Parts parts, std::string group,
                                               std::string name);
/// Of the protocol of KIP-848.
std::unique_ptr<SimMember> make_consumer_member(SimMember::Parts parts, std::string group,
                                                std::string name);

/// What is committed, by partition.
Task<std::map<std::int32_t, std::int64_t>> committed_offsets(Network& network, std::string group);

}  // namespace millrace::testing
