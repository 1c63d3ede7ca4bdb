// A simulated broker with the aggregates of tests/plugins/aggregates, spoken to in words.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/aggregates.h>
#include <millrace/testing/sim_environment.h>

#include "sim_broker.h"

namespace millrace::testing {

/// What was answered: words, or the name of an error.
struct Said {
  bool well = false;
  std::string words;
};

class SimAggregates {
 public:
  /// Every write is flushed before it is acknowledged; snapshots are taken often.
  explicit SimAggregates(std::uint64_t seed, std::vector<std::string> more = {});

  SimWorld& world() noexcept { return world_; }
  SimEnvironment& node() noexcept { return node_; }
  SimBroker& broker() noexcept { return broker_; }

  /// Sends a command and waits; again while it is to be sent again. Gives up after `limit`.
  Said command(const std::string& aggregate, const std::string& key, const std::string& words,
               Duration limit = std::chrono::minutes(5));
  Said query(const std::string& aggregate, const std::string& key,
             Duration limit = std::chrono::minutes(5));
  /// Begins a command and goes on.
  std::shared_ptr<std::optional<Said>> begin(const std::string& aggregate, const std::string& key,
                                             const std::string& words);
  /// Once, and without waiting long: nothing may come.
  std::optional<Said> try_command(const std::string& aggregate, const std::string& key,
                                  const std::string& words, Duration limit);
  void create_topic(const std::string& topic, std::int32_t partitions);

 private:
  Aggregates& aggregates();

  SimWorld world_;
  SimEnvironment& node_;
  SimBroker broker_;
};

}  // namespace millrace::testing
