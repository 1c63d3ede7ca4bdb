#include "kernel/cluster/controller.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "kernel/cluster/controller_term.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

namespace {

constexpr Duration pause_after_failure = std::chrono::seconds(1);

Error not_controller() { return Error{Errc::fenced, "This is not the correct controller."}; }

}  // namespace

Controller::Controller(ControllerParts parts) : parts_(std::move(parts)) {}

Controller::~Controller() = default;

void Controller::set_defaults(std::map<std::string, std::string> defaults) {
  parts_.defaults = std::move(defaults);
  if (term_) term_->take_defaults();
}

bool Controller::active() const noexcept { return term_ && term_->serving(); }

// Ours from the commit on that made the key of the controller and raised the epoch, both at once.
Task<Controller::Election> Controller::stand() {
  auto& coordination = parts_.coordination;
  const std::string key(znodes::controller);
  const std::string epoch_key(znodes::controller_epoch);
  while (true) {
    MR_CO_TRY(const auto seen, co_await coordination.next_change(key, Seen{}));
    Election election{.epoch = 1, .version = must_not_exist};
    auto before = co_await coordination.get(epoch_key);
    if (before) {
      std::int32_t epoch = 0;
      const auto& text = before->value;
      std::from_chars(text.data(), text.data() + text.size(), epoch);
      election = {.epoch = epoch + 1, .version = before->version};
    } else if (before.error().code != Errc::not_found) {
      co_return before.error();
    }
    const auto now = parts_.environment.clock().wall();
    std::vector<Write> writes;
    writes.push_back({.key = key,
                      .value = znodes::encode_controller(parts_.id, now),
                      .expected = must_not_exist,
                      .ephemeral = true});
    writes.push_back(
        {.key = epoch_key, .value = std::to_string(election.epoch), .expected = election.version});
    const auto versions = co_await coordination.commit(std::move(writes));
    if (versions) {
      election.version = versions->back();
      co_return election;
    }
    if (versions.error().code != Errc::conflict) co_return versions.error();
    MR_CO_CHECK(co_await coordination.next_change(key, seen));
  }
}

Task<> Controller::run() {
  MR_CO_TRY(const auto pass, running_.enter());
  waiting_ = std::make_unique<CancelScope>();
  while (!closing_) {
    auto standing = stand().within(*waiting_);
    const auto election = co_await std::move(standing);
    if (!election) {
      const auto code = election.error().code;
      if (code == Errc::fenced || code == Errc::cancelled || !has_served_) {
        co_return election.error();
      }
      parts_.log.error("standing for controller failed; it is tried again",
                       {{"error", to_string(election.error())}});
      auto pausing = sleep(pause_after_failure).within(*waiting_);
      MR_CO_CHECK(co_await std::move(pausing));
      continue;
    }
    if (closing_) break;
    parts_.log.info("this broker is the controller", {{"epoch", election->epoch}});
    term_ = std::make_unique<ControllerTerm>(parts_, election->epoch, election->version);
    const auto ended = co_await term_->serve();
    const bool served = term_->has_served();
    term_.reset();
    if (closing_) break;
    if (ended.error().code == Errc::fenced || !(served || has_served_)) co_return ended.error();
    has_served_ = true;
    parts_.log.warning("this broker is not the controller any more",
                       {{"reason", to_string(ended.error())}});
    auto pausing = sleep(pause_after_failure).within(*waiting_);
    MR_CO_CHECK(co_await std::move(pausing));
  }
  co_return {};
}

Task<> Controller::close() {
  closing_ = true;
  if (waiting_) waiting_->cancel();
  if (term_) term_->resign(Error{Errc::closed, "the broker stops"});
  co_return co_await running_.close();
}

Task<Controller::Turn> Controller::turn() {
  if (!active()) co_return not_controller();
  co_return co_await term_->turn();
}

const ClusterState& Controller::state() const { return term_->state(); }

Task<TopicsChanged> Controller::add_topics(std::vector<TopicState> topics) {
  return term_->add_topics(std::move(topics));
}
Task<UpdateSender::Moment> Controller::grow_topic(TopicState topic) {
  return term_->grow_topic(std::move(topic));
}
Task<UpdateSender::Moment> Controller::shrink_topic(std::string name, std::size_t count) {
  return term_->shrink_topic(std::move(name), count);
}
Task<TopicsChanged> Controller::erase_topics(std::vector<std::string> names) {
  return term_->erase_topics(std::move(names));
}
bool Controller::being_erased(const std::string& name) const {
  return active() && term_->being_erased(name);
}

Task<> Controller::told(UpdateSender::Moment moment, Topics topics) {
  if (!active()) co_return not_controller();
  std::set<std::int32_t> brokers;
  for (const auto& topic : topics) {
    for (const auto& partition : topic->partitions) {
      brokers.insert(partition.replicas.begin(), partition.replicas.end());
    }
    brokers.insert(parts_.id);
  }
  if (topics.empty()) {
    for (const auto& [id, broker] : term_->state().brokers) brokers.insert(id);
  }
  co_return co_await term_->sender().told(moment, std::move(brokers));
}

std::vector<ReplicaFailure> Controller::failures_of(const TopicState& topic,
                                                    std::int32_t first) const {
  return active() ? term_->failures_of(topic, first) : std::vector<ReplicaFailure>();
}

Task<> Controller::erased(std::string name) {
  if (!active()) co_return not_controller();
  co_return co_await term_->erased(std::move(name));
}

Task<std::vector<InSyncChanged>> Controller::change_in_sync(std::int32_t broker,
                                                            std::int64_t broker_epoch,
                                                            std::vector<InSyncChange> changes) {
  if (!active()) co_return not_controller();
  co_return co_await term_->change_in_sync(broker, broker_epoch, std::move(changes));
}

Task<LeadersMoved> Controller::shut_down(std::int32_t broker, std::int64_t broker_epoch) {
  if (!active()) co_return not_controller();
  co_return co_await term_->shut_down(broker, broker_epoch);
}

Task<ClusterOutcome> Controller::elect_leaders(ElectionRequest request) {
  if (!active()) co_return not_controller();
  co_return co_await term_->elect_leaders(std::move(request));
}

Task<ClusterOutcome> Controller::reassign(ReassignmentRequest request) {
  if (!active()) co_return not_controller();
  co_return co_await term_->reassign(std::move(request));
}

Result<ReassignmentsListed> Controller::list_reassignments(
    const std::optional<std::vector<TopicPartitions>>& topics) const {
  if (!active()) return not_controller();
  return term_->list_reassignments(topics);
}

}  // namespace millrace::kernel
