#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "kernel/cli/bench_run.h"
#include "kernel/cli/partition_reader.h"

namespace millrace::kernel::cli {

namespace {

constexpr FetchLimits limits{
    .partition_bytes_max = 1 << 20  // as Kafka's own consumers ask for
};

// One connection's partitions: a request at a time to each broker that leads some of them.
class Line {
 public:
  Line(BenchRun& run, BenchCounts& counts, const ConsumeGoal& goal,
       std::unique_ptr<ClusterClient> cluster)
      : run_(run), counts_(counts), goal_(goal), cluster_(std::move(cluster)) {}

  void add(ReadPosition position) {
    led_[position.partition.leader].push_back(std::move(position));
  }

  Task<> begin() {
    // A reader that finds nothing to read ends at once.
    std::vector<std::int32_t> leaders;
    for (const auto& [leader, positions] : led_) leaders.push_back(leader);
    for (const auto leader : leaders) MR_CO_CHECK(co_await begin(leader));
    co_return {};
  }

  /// Until all have read what they should; leaders that change bring new readers.
  Task<> end() {
    while (!readers_.empty()) {
      auto reader = std::move(readers_.front());
      readers_.pop_front();
      auto ended = co_await to_end(std::move(reader));
      if (!ended && ended.error().code != Errc::cancelled) run_.fail(ended.error());
    }
    co_return {};
  }

 private:
  Task<> begin(std::int32_t leader) {
    Shard& shard = co_await this_shard();
    readers_.push_back(start(shard, read(leader), co_await this_scope()));
    co_return {};
  }

  bool done() const {
    return run_.stopping() || (goal_.messages > 0 && counts_.messages >= goal_.messages);
  }

  Task<> read(std::int32_t leader) {
    PartitionReader reader(*cluster_, run_.topic().topic, run_.codecs());
    auto& positions = led_[leader];
    while (!done()) {
      std::erase_if(positions, [](const ReadPosition& one) {
        return one.end.value >= 0 && one.next >= one.end;
      });
      if (positions.empty()) break;
      // Who stands in front is answered first.
      std::ranges::rotate(positions, positions.begin() + 1);
      const auto asked = run_.now();
      MR_CO_TRY(const auto answer, co_await reader.fetch(positions, limits));
      const auto before = counts_.messages;
      const auto answered = run_.now();
      MR_CO_CHECK(reader.open(answer, positions, [this](auto, const RecordView& record) {
        count(record);
        return true;
      }));
      MR_CO_CHECK(co_await hand_over(leader));
      if (goal_.stamped || counts_.messages == before) continue;
      counts_.latency.add(
          std::chrono::duration_cast<std::chrono::microseconds>(answered - asked).count());
    }
    led_.erase(leader);
    co_return {};
  }

  // What another broker leads now is another reader's.
  Task<> hand_over(std::int32_t leader) {
    auto& positions = led_[leader];
    const auto moved = std::ranges::partition(
        positions, [leader](const ReadPosition& one) { return one.partition.leader == leader; });
    std::vector<ReadPosition> others(std::move_iterator(moved.begin()),
                                     std::move_iterator(moved.end()));
    positions.erase(moved.begin(), moved.end());
    for (auto& position : others) {
      const auto next = position.partition.leader;
      const bool is_read = led_.contains(next);
      add(std::move(position));
      if (!is_read) MR_CO_CHECK(co_await begin(next));
    }
    co_return {};
  }

  void count(const RecordView& record) {
    const auto bytes = record.value ? record.value->size() : 0;
    const auto now = run_.now();
    counts_.count(1, bytes, now);
    Duration::rep due = 0;
    if (!goal_.stamped || bytes < sizeof due) return;
    std::memcpy(&due, record.value->data(), sizeof due);
    const auto late = now.time_since_epoch() - Duration(due);
    counts_.latency.add(std::chrono::duration_cast<std::chrono::microseconds>(late).count());
  }

  BenchRun& run_;
  BenchCounts& counts_;
  const ConsumeGoal& goal_;
  std::unique_ptr<ClusterClient> cluster_;
  std::map<std::int32_t, std::vector<ReadPosition>> led_;  // by leaders, each with its reader
  std::deque<Pending<>> readers_;
};

}  // namespace

Task<> bench_consume(BenchRun& run, BenchCounts& counts, ConsumeGoal goal) {
  const auto& partitions = run.topic().partitions;
  const auto connections = std::min(run.settings().connections, partitions.size());
  std::vector<std::unique_ptr<Line>> lines;
  for (std::size_t at = 0; at < connections; ++at) {
    MR_CO_TRY(auto cluster, co_await run.connect());
    std::vector<std::string> names{run.topic().topic.name};
    MR_CO_CHECK(co_await cluster->metadata(std::move(names)));
    lines.push_back(std::make_unique<Line>(run, counts, goal, std::move(cluster)));
  }
  counts.first = run.now();
  for (std::size_t at = 0; at < partitions.size(); ++at) {
    const auto end = goal.to.empty() ? Offset{} : goal.to[at];
    lines[at % connections]->add({partitions[at], goal.from[at], end});
  }
  for (auto& line : lines) MR_CO_CHECK(co_await line->begin());
  for (auto& line : lines) MR_CO_CHECK(co_await line->end());
  co_return {};
}

}  // namespace millrace::kernel::cli
