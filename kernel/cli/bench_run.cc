#include "kernel/cli/bench_run.h"

#include <algorithm>
#include <iostream>

#include <millrace/kafka/create_topics.h>
#include <millrace/kafka/delete_topics.h>

#include "kernel/cli/output.h"
#include "kernel/cli/partition_reader.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::int32_t admin_timeout_ms = 30'000;
constexpr int leader_tries_max = 300;
constexpr Duration leader_wait = std::chrono::milliseconds(100);

bool is_led(const TopicInfo& topic) {
  return !topic.partitions.empty() &&
         std::ranges::all_of(topic.partitions,
                             [](const PartitionInfo& one) { return one.leader >= 0; });
}

}  // namespace

Task<std::unique_ptr<ClusterClient>> BenchRun::connect() {
  MR_CO_TRY(auto cluster, co_await ClusterClient::connect(environment_.network(), bootstrap_));
  // Each request of each connection would tell the same.
  cluster->on_wait([this](const std::string& told) {
    if (waits_++ == 0) std::cerr << "millrace: " << told << '\n' << std::flush;
  });
  co_return std::move(cluster);
}

Task<> BenchRun::begin() {
  MR_CO_TRY(auto cluster, co_await connect());
  if (!settings_.topic.empty()) {
    auto name = settings_.topic;
    MR_CO_TRY(topic_, co_await cluster->topic(std::move(name)));
    co_return {};
  }
  MR_CO_CHECK(co_await make_topic(*cluster));
  // Brokers learn of it one after the other.
  for (int tried = 0; tried < leader_tries_max && !interrupt_.asked(); ++tried) {
    auto name = topic_.topic.name;
    auto found = co_await cluster->topic(std::move(name));
    if (found && is_led(*found)) {
      topic_ = std::move(*found);
      co_return {};
    }
    MR_CO_CHECK(co_await sleep(leader_wait));
  }
  if (interrupt_.asked()) co_return Error{Errc::cancelled, "interrupted"};
  co_return Error{Errc::timed_out, "topic " + in_quotes(topic_.topic.name) +
                                       ", made for this, has no leader after 30 s"};
}

Task<> BenchRun::make_topic(ClusterClient& cluster) {
  topic_.topic.name = "millrace-bench-" + to_string(environment_.random().uuid());
  kafka::CreateTopicsRequest request;
  request.timeout_ms = admin_timeout_ms;
  auto& topic = request.topics.emplace_back();
  topic.name = topic_.topic.name;
  topic.num_partitions = settings_.partitions;
  topic.replication_factor = settings_.replicas;
  const auto code_of = [](const auto& answer) {
    return ErrorCode{answer.topics.empty() ? std::int16_t{0} : answer.topics.front().error_code};
  };
  made_ = true;  // also where the answer is lost
  made_topic_.set(topic_.topic.name);
  MR_CO_TRY(const auto answer, co_await cluster.ask_controller(std::move(request), code_of));
  if (answer.topics.size() != 1) co_return Error{Errc::corrupt, "the broker answered no topic"};
  const auto& created = answer.topics.front();
  if (const ErrorCode code{created.error_code}; code != ErrorCode::none) {
    made_ = false;
    made_topic_.set({});
    co_return error_of(code, created.error_message.value_or("a topic to measure with"));
  }
  co_return {};
}

Task<> BenchRun::end() {
  if (!made_) co_return {};
  const auto name = topic_.topic.name;
  if (interrupt_.asked()) {
    std::cerr << "millrace: interrupted; topic " << name
              << " is being removed, another Ctrl-C leaves it\n"
              << std::flush;
  }
  auto removed = co_await remove_topic();
  if (removed) made_topic_.set({});
  if (removed) co_return {};
  co_return Error{removed.error().code, "topic " + in_quotes(name) +
                                            " is left behind (millrace topic delete " + name +
                                            "): " + removed.error().detail};
}

Task<> BenchRun::remove_topic() {
  MR_CO_TRY(auto cluster, co_await connect());
  kafka::DeleteTopicsRequest request;
  request.timeout_ms = admin_timeout_ms;
  constexpr std::int16_t structs_since = 6;
  MR_CO_TRY(const auto version, cluster->any().version_of(kafka::ApiKey::delete_topics));
  if (version >= structs_since) {
    request.topics.emplace_back().name = topic_.topic.name;
  } else {
    request.topic_names.emplace_back(topic_.topic.name);
  }
  const auto code_of = [](const auto& answer) {
    return ErrorCode{answer.responses.empty() ? std::int16_t{0}
                                              : answer.responses.front().error_code};
  };
  MR_CO_TRY(const auto answer, co_await cluster->ask_controller(std::move(request), code_of));
  const auto code = code_of(answer);
  made_ = false;
  if (code == ErrorCode::none || code == ErrorCode::unknown_topic_or_partition) co_return {};
  co_return error_of(code, "it was to be deleted");
}

Task<std::vector<Offset>> bench_bounds(BenchRun& run, OffsetSpec which) {
  MR_CO_TRY(auto cluster, co_await run.connect());
  std::vector<std::string> names{run.topic().topic.name};
  MR_CO_CHECK(co_await cluster->metadata(std::move(names)));
  std::vector<Offset> offsets;
  auto partitions = run.topic().partitions;
  for (auto& partition : partitions) {
    auto finding =
        find_offset(*cluster, run.topic().topic, partition, static_cast<std::int64_t>(which));
    MR_CO_TRY(const auto found, co_await std::move(finding));
    offsets.push_back(found);
  }
  co_return std::move(offsets);
}

}  // namespace millrace::kernel::cli
