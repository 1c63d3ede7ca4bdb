// [topic.NAME]: what the topic shall be when it is made, under Kafka's names and two of our own.
//
//   [topic.orders]
//   partitions = 6
//   replication-factor = 3
//   "retention.ms" = 86400000
#pragma once

#include <vector>

#include <millrace/options.h>

#include "kernel/config/config.h"
#include "kernel/config/document.h"
#include "kernel/config/stream_tables.h"

namespace millrace::kernel {

/// Every topic; what is wrong is added to `errors`. `settings` declares what a topic may be set to.
std::vector<TopicSettings> check_topics(const ConfigTable& topics, const MillraceOption* settings,
                                        const ReadTable& read, ConfigErrors& errors);

}  // namespace millrace::kernel
