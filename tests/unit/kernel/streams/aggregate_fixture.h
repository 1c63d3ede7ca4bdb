// Ledgers on a broker of two shards.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "../broker/broker_fixture.h"
#include "kernel/streams/aggregate_router.h"
#include "ledger.h"

namespace millrace::kernel {

class AggregateTest : public BrokerTest {
 protected:
  using Body = std::function<void(Ledger&, Command&, Context&)>;
  /// An answer that may not have come yet.
  using Later = std::shared_ptr<std::optional<AggregateAnswer>>;

  AggregateTest();
  ~AggregateTest() override;

  /// Ends the router and begins another one, on the same partitions.
  void reopen(OperatorSettings settings = {.snapshot_events = 1'000'000,
                                           .snapshot_bytes = 1UL << 40});
  void close();

  /// Sends a command from a shard and waits for its answer.
  AggregateAnswer ask(std::string key, Body body, std::size_t shard = 0);
  /// The same, and goes on.
  Later begin(std::string key, Body body, std::size_t shard = 0, CancelScope* scope = nullptr);
  Later begin_query(std::string key, std::size_t shard = 0);
  AggregateAnswer query(std::string key, std::size_t shard = 0);
  bool comes(const Later& answer, Duration limit = std::chrono::seconds(60));
  /// All that can happen now has happened.
  void settle() { world_.run_for(std::chrono::milliseconds(1)); }

  /// Sets a text and answers it.
  static Body put(std::string text);
  /// Waits, until somebody answers all that wait.
  static Body wait();
  static std::string text_of(const AggregateAnswer& answer);

  TopicPartition partition_of(std::string_view key) const;
  std::shared_ptr<Partition> partition_at(const TopicPartition& id);
  void hold(const TopicPartition& id, bool held);
  void erase_topic(const std::string& topic);

  LedgerScript script_;
  AggregateDeclaration declaration_{.name = "ledger",
                                    .topic = "__ledger",
                                    .partitions = 4,
                                    .replication_factor = 3,
                                    .settings = {}};
  std::unique_ptr<LedgerFactory> factory_;
  std::unique_ptr<AggregateRouter> router_;
};

}  // namespace millrace::kernel
