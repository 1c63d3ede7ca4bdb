// What an operator asks of the broker, split into what the control thread changes and what shards
// answer.
#pragma once

#include <vector>

#include <millrace/admin.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/topic_admin.h"

namespace millrace::kernel {

class KernelAdmin final : public Admin {
 public:
  KernelAdmin(BrokerParts& parts, TopicAdmin& topics) : parts_(parts), topics_(topics) {}

  Task<std::vector<TopicCreated>> create_topics(Session& session,
                                                CreateTopicsRequest request) override;
  Task<std::vector<TopicDeleted>> delete_topics(Session& session, std::vector<TopicName> topics,
                                                Duration timeout) override;

 private:
  Shard& control() noexcept { return parts_.environment.control(); }

  BrokerParts& parts_;
  TopicAdmin& topics_;
};

}  // namespace millrace::kernel
