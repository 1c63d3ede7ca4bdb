#include "kernel/cluster/update_sender.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernel/cluster/updates.h"

namespace millrace::kernel {

namespace {

constexpr Duration pause_min = std::chrono::milliseconds(50);
constexpr Duration pause_max = std::chrono::seconds(1);

// A topic whose logs could not all be erased is told again.
std::vector<TopicName> erased_of(const ClusterUpdate& told,
                                 const std::vector<ReplicaFailure>& failures) {
  std::vector<TopicName> erased;
  for (const auto& topic : told.deleted) {
    const bool failed = std::ranges::any_of(failures, [&](const ReplicaFailure& failure) {
      return failure.partition.topic == topic.name;
    });
    if (!failed) erased.push_back(topic);
  }
  return erased;
}

}  // namespace

void UpdateSender::wake() {
  for (const auto& [id, receiver] : receivers_) receiver->changed.notify_all();
}

void UpdateSender::brokers_changed() {
  if (closed_) return;
  std::erase_if(receivers_, [this](const auto& entry) {
    const auto now = state_.brokers.find(entry.first);
    if (now != state_.brokers.end() && now->second.epoch == entry.second->broker.epoch) {
      entry.second->broker = now->second;
      return false;
    }
    entry.second->scope.cancel();
    return true;
  });
  ++now_;
  for (const auto& [id, broker] : state_.brokers) {
    auto& receiver = receivers_[id];
    if (receiver) continue;
    receiver = std::make_shared<Receiver>();
    receiver->broker = broker;
    spawn(control_, tell(receiver), "updates of a broker", &receiver->scope);
  }
  wake();
  told_.notify_all();
}

void UpdateSender::partition_changed(const std::string& topic, std::int32_t partition) {
  ++now_;
  for (const auto& [id, receiver] : receivers_) add_untold(*receiver, topic, partition);
  wake();
}

void UpdateSender::add_untold(Receiver& to, const std::string& topic, std::int32_t partition) {
  const auto known = to.untold.find(topic);
  if (known == to.untold.end()) {
    to.untold[topic] = {partition};
  } else if (!known->second.empty()) {
    known->second.insert(partition);
  }
}

void UpdateSender::tell_again(std::int32_t broker, const std::vector<TopicPartition>& partitions) {
  const auto found = receivers_.find(broker);
  if (found == receivers_.end()) return;
  auto& receiver = *found->second;
  for (const auto& id : partitions) add_untold(receiver, id.topic, id.partition);
  receiver.again = true;
  receiver.changed.notify_all();
}

void UpdateSender::topic_changed(const std::string& topic) {
  ++now_;
  for (const auto& [id, receiver] : receivers_) receiver->untold[topic] = {};
  wake();
}

void UpdateSender::topic_deleted(const TopicName& topic, std::int32_t broker) {
  ++now_;
  if (const auto found = receivers_.find(broker); found != receivers_.end()) {
    found->second->deleted.insert_or_assign(topic.name, topic.id);
  }
  wake();
}

ClusterUpdate UpdateSender::next_update(Receiver& to) const {
  ClusterUpdate update{.controller = state_.controller_id,
                       .controller_epoch = controller_epoch_,
                       .receiver_epoch = to.broker.epoch,
                       .cluster_id = state_.cluster_id,
                       .full = to.full,
                       .brokers = {},
                       .topics = {},
                       .deleted = {},
                       .broker_configs = {}};
  for (const auto& [id, broker] : state_.brokers) update.brokers.push_back(to_update(broker));
  update.broker_configs.insert(state_.broker_configs.begin(), state_.broker_configs.end());
  for (const auto& [name, id] : to.deleted) update.deleted.push_back({name, id});
  if (to.full) {
    for (const auto& [name, topic] : state_.topics) update.topics.push_back(to_update(*topic));
    return update;
  }
  for (const auto& [name, partitions] : to.untold) {
    const auto* topic = state_.find(std::string_view(name));
    if (!topic) continue;
    update.topics.push_back(partitions.empty() ? to_update(*topic) : to_update(*topic, partitions));
  }
  return update;
}

void UpdateSender::put_back(Receiver& to, Untold untold) {
  for (auto& [topic, partitions] : untold) {
    const auto [now, fresh] = to.untold.try_emplace(topic, partitions);
    if (fresh || now->second.empty()) continue;
    if (partitions.empty()) {
      now->second.clear();
    } else {
      now->second.merge(partitions);
    }
  }
}

Task<> UpdateSender::tell(std::shared_ptr<Receiver> to) {
  MR_CO_TRY(const auto pass, running_.enter());
  auto pause = pause_min;
  while (true) {
    while (to->told == now_ && !to->again) MR_CO_CHECK(co_await to->changed.wait());
    to->again = false;
    const auto moment = now_;
    auto update = next_update(*to);
    auto untold = std::exchange(to->untold, {});
    auto answer = co_await target_.update(to->broker, update);
    if (to->scope.cancelled()) co_return {};
    if (answer && answer->error == ErrorCode::stale_controller_epoch) {
      listener_.deposed();
      co_return {};
    }
    if (!answer || answer->error != ErrorCode::none) {
      put_back(*to, std::move(untold));
      to->again = true;
      MR_CO_CHECK(co_await sleep(pause));
      pause = std::min(2 * pause, pause_max);
      continue;
    }
    pause = pause_min;
    to->full = false;
    to->told = moment;
    auto erased = erased_of(update, answer->failures);
    for (const auto& topic : erased) to->deleted.erase(topic.name);
    listener_.answered(to->broker.id, update, std::move(erased), std::move(answer->failures));
    told_.notify_all();
  }
}

Task<> UpdateSender::told(Moment moment, std::set<std::int32_t> brokers) {
  MR_CO_TRY(const auto pass, running_.enter());
  const auto waiting = [&] {
    return std::ranges::any_of(brokers, [&](std::int32_t broker) {
      const auto found = receivers_.find(broker);
      return found != receivers_.end() && found->second->told < moment;
    });
  };
  while (waiting()) {
    if (closed_) co_return Error{Errc::closed, "there is another controller now"};
    MR_CO_CHECK(co_await told_.wait());
  }
  co_return {};
}

Task<> UpdateSender::close() {
  closed_ = true;
  for (const auto& [id, receiver] : receivers_) receiver->scope.cancel();
  told_.notify_all();
  co_return co_await running_.close();
}

}  // namespace millrace::kernel
