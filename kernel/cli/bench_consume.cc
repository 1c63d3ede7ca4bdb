#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include <millrace/batch.h>
#include <millrace/kafka/fetch.h>

#include "kernel/cli/bench_run.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::int32_t fetch_wait_ms = 500;
constexpr std::int32_t fetch_bytes_max = 8 << 20;
constexpr std::int32_t partition_bytes_max = 1 << 20;  // as Kafka's own consumers ask for
constexpr std::size_t opened_bytes_max = std::size_t{256} << 20;

struct Position {
  PartitionInfo partition;
  Offset next;
  Offset end;  // none: there is no end
};

class Consumers {
 public:
  Consumers(BenchRun& run, BenchCounts& counts, ConsumeGoal goal)
      : run_(run), counts_(counts), goal_(std::move(goal)) {}

  Task<> run() {
    const auto& partitions = run_.topic().partitions;
    const auto connections = std::min(run_.settings().connections, partitions.size());
    std::vector<std::unique_ptr<ClusterClient>> clusters;
    for (std::size_t at = 0; at < connections; ++at) {
      MR_CO_TRY(auto cluster, co_await run_.connect());
      std::vector<std::string> names{run_.topic().topic.name};
      MR_CO_CHECK(co_await cluster->metadata(std::move(names)));
      clusters.push_back(std::move(cluster));
    }
    counts_.first = run_.now();
    Shard& shard = co_await this_shard();
    std::vector<Pending<>> readers;
    for (std::size_t at = 0; at < connections; ++at) {
      // One request at a time to each leader.
      std::map<std::int32_t, std::vector<Position>> by_leader;
      for (auto number = at; number < partitions.size(); number += connections) {
        const auto end = goal_.to.empty() ? Offset{} : goal_.to[number];
        by_leader[partitions[number].leader].push_back(
            {partitions[number], goal_.from[number], end});
      }
      for (auto& [leader, positions] : by_leader) {
        readers.push_back(
            start(shard, read(clusters[at].get(), std::move(positions)), co_await this_scope()));
      }
    }
    for (auto& reader : readers) {
      auto ended = co_await reader;
      if (!ended && ended.error().code != Errc::cancelled) run_.fail(ended.error());
    }
    co_return {};
  }

 private:
  bool done() const {
    return run_.stopping() || (goal_.messages > 0 && counts_.messages >= goal_.messages);
  }

  Task<> read(ClusterClient* cluster, std::vector<Position> positions) {
    MR_CO_TRY(auto* leader, co_await cluster->leader_of(positions.front().partition));
    while (!done()) {
      std::erase_if(positions,
                    [](const Position& one) { return one.end.value >= 0 && one.next >= one.end; });
      if (positions.empty()) break;
      const auto asked = run_.now();
      MR_CO_TRY(const auto answer, co_await leader->call(request_for(positions)));
      if (const ErrorCode code{answer.error_code}; code != ErrorCode::none) {
        co_return error_of(code, "a fetch of topic " + run_.topic().topic.name);
      }
      const auto before = counts_.messages;
      const auto answered = run_.now();
      for (const auto& topic : answer.responses) {
        for (const auto& fetched : topic.partitions) MR_CO_CHECK(take(fetched, positions));
      }
      if (goal_.stamped || counts_.messages == before) continue;
      counts_.latency.add(
          std::chrono::duration_cast<std::chrono::microseconds>(answered - asked).count());
    }
    co_return {};
  }

  kafka::FetchRequest request_for(std::vector<Position>& positions) const {
    // Who stands in front is answered first.
    std::ranges::rotate(positions, positions.begin() + 1);
    kafka::FetchRequest request;
    request.replica_id = -1;
    request.max_wait_ms = fetch_wait_ms;
    request.min_bytes = 1;
    request.max_bytes = fetch_bytes_max;
    auto& topic = request.topics.emplace_back();
    topic.topic = run_.topic().topic.name;
    topic.topic_id = run_.topic().topic.id;
    for (const auto& position : positions) {
      auto& wanted = topic.partitions.emplace_back();
      wanted.partition = position.partition.partition;
      wanted.fetch_offset = position.next.value;
      wanted.partition_max_bytes = partition_bytes_max;
    }
    return request;
  }

  Result<> take(const kafka::FetchResponse::Partition& fetched, std::vector<Position>& positions) {
    const TopicPartition id{run_.topic().topic.name, fetched.partition_index};
    if (const ErrorCode code{fetched.error_code}; code != ErrorCode::none) {
      return error_of(code, to_string(id) + "; bench does not ask again");
    }
    const auto position = std::ranges::find_if(positions, [&](const Position& one) {
      return one.partition.partition == fetched.partition_index;
    });
    if (position == positions.end()) {
      return Error{Errc::corrupt, "the broker answered for another partition"};
    }
    if (!fetched.records || fetched.records->empty()) return {};
    MR_TRY(const auto records, fetched.records->flatten());
    return open(records, position->next);
  }

  // The last batch may be cut short; the next fetch brings it whole.
  Result<> open(const Buffer& records, Offset& next) {
    std::size_t at = 0;
    while (at < records.size()) {
      const auto rest = records.slice(at);
      const auto head = read_entry_head(rest);
      if (!head && head.error().code == Errc::out_of_range) return {};
      if (!head) return head.error();
      const auto batch = rest.slice(0, head->total_bytes);
      at += head->total_bytes;
      MR_TRY(const auto header, read_batch_header(batch));
      if (!verify_crc(batch)) {
        return Error{Errc::corrupt, "a batch of offset " +
                                        std::to_string(header.base_offset.value) +
                                        " came with a wrong checksum"};
      }
      const auto from = next;
      next = header.last_offset() + 1;
      if (header.control()) continue;
      MR_TRY(const auto section, open_records(header, batch, run_.codecs(), opened_bytes_max));
      MR_CHECK(for_each_record(header, section, [&](const RecordView& record) {
        if (record.offset >= from) count(record);
        return true;
      }));
    }
    return {};
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
  const ConsumeGoal goal_;
};

}  // namespace

Task<> bench_consume(BenchRun& run, BenchCounts& counts, ConsumeGoal goal) {
  Consumers consumers(run, counts, std::move(goal));
  co_return co_await consumers.run();
}

}  // namespace millrace::kernel::cli
