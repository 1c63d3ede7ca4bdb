#include <algorithm>
#include <cstring>

#include <millrace/batch.h>
#include <millrace/kafka/produce.h>

#include "kernel/cli/bench_run.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::int32_t produce_timeout_ms = 30'000;
constexpr std::size_t pool_bytes = std::size_t{1} << 20;
constexpr std::size_t pool_step = 4099;  // a prime, so that messages begin everywhere

// Letters by chance, 5 bits in each byte: a codec finds three eighths to save, as in many logs.
std::vector<std::byte> letters(Random& random, std::size_t bytes) {
  constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz 01234";
  std::vector<std::byte> text(bytes);
  random.fill(text);
  for (auto& letter : text) {
    letter = static_cast<std::byte>(alphabet[std::to_integer<unsigned>(letter) % alphabet.size()]);
  }
  return text;
}

// Its words were checked when they were parsed.
CompressionId compression_of(const std::string& text) {
  for (const auto id :
       {CompressionId::gzip, CompressionId::snappy, CompressionId::lz4, CompressionId::zstd}) {
    if (name_of(id) == text) return id;
  }
  return CompressionId::none;
}

class Producers {
 public:
  Producers(BenchRun& run, BenchCounts& counts, bool stamped)
      : run_(run),
        counts_(counts),
        stamped_(stamped),
        acks_(run.settings().acks == "1" ? 1 : -1),
        compression_(compression_of(run.settings().compression)),
        pool_(letters(run.environment().random(), pool_bytes + run.settings().message_bytes)),
        pace_(run.now(), run.settings().rate),
        batch_messages_(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(run.settings().batch_bytes /
                                         std::max<std::size_t>(run.settings().message_bytes, 1)))) {
  }

  Task<> run() {
    std::vector<std::unique_ptr<ClusterClient>> connections;
    for (std::size_t at = 0; at < run_.settings().connections; ++at) {
      MR_CO_TRY(auto cluster, co_await run_.connect());
      std::vector<std::string> names{run_.topic().topic.name};
      MR_CO_CHECK(co_await cluster->metadata(std::move(names)));
      // Before the clock runs.
      for (const auto& partition : run_.topic().partitions) {
        MR_CO_CHECK(co_await cluster->leader_of(partition));
      }
      connections.push_back(std::move(cluster));
    }
    pace_ = Pace(run_.now(), run_.settings().rate);
    counts_.first = pace_.start();
    Shard& shard = co_await this_shard();
    std::vector<Pending<>> workers;
    for (auto& connection : connections) {
      workers.push_back(start(shard, work(connection.get()), co_await this_scope()));
    }
    for (auto& worker : workers) {
      auto ended = co_await worker;
      if (!ended && ended.error().code != Errc::cancelled) run_.fail(ended.error());
    }
    co_return {};
  }

 private:
  struct Share {
    std::int64_t first = 0;
    std::int64_t messages = 0;
  };

  bool all_taken() const {
    const auto limit = run_.settings().messages;
    return limit > 0 && taken_ >= limit;
  }

  Share take() {
    auto share = Share{taken_, batch_messages_};
    if (pace_.paced()) share.messages = std::min(share.messages, pace_.due_by(run_.now(), taken_));
    if (const auto limit = run_.settings().messages; limit > 0) {
      share.messages = std::min(share.messages, limit - taken_);
    }
    taken_ += share.messages;
    return share;
  }

  // One connection: requests follow each other, as many as may be under way.
  Task<> work(ClusterClient* cluster) {
    Shard& shard = co_await this_shard();
    Gate gate;
    Event answered;
    while (!run_.stopping() && !all_taken()) {
      if (gate.inside() >= run_.settings().in_flight) {
        MR_CO_CHECK(co_await answered.wait());
        continue;
      }
      const auto share = take();
      if (share.messages == 0) {
        const auto wait = pace_.due(taken_) - run_.now();
        if (wait > Duration(0)) MR_CO_CHECK(co_await sleep(wait));
        continue;
      }
      MR_CO_TRY(auto pass, gate.enter());
      spawn(shard, send(cluster, share, std::move(pass), &answered), "bench",
            co_await this_scope());
    }
    co_return co_await gate.close();
  }

  Result<Buffer> batch_of(const Share& share) {
    const auto bytes = run_.settings().message_bytes;
    const auto wall = run_.environment().clock().wall();
    BatchBuilder builder({.compression = compression_});
    for (std::int64_t at = 0; at < share.messages; ++at) {
      pool_at_ = (pool_at_ + pool_step) % pool_bytes;
      auto value = MutableBytes(pool_).subspan(pool_at_, bytes);
      if (stamped_) {
        const auto due = pace_.due(share.first + at).time_since_epoch().count();
        std::memcpy(value.data(), &due, sizeof due);
      }
      builder.add(wall, std::nullopt, value);
    }
    return std::move(builder).finish(run_.codecs());
  }

  Task<> send(ClusterClient* cluster, Share share, Gate::Pass pass, Event* answered) {
    auto sent = co_await send_batch(cluster, share);
    if (!sent && sent.error().code != Errc::cancelled) run_.fail(sent.error());
    pass = {};
    answered->notify_all();
    co_return {};
  }

  Task<> send_batch(ClusterClient* cluster, Share share) {
    const auto& topic = run_.topic();
    const auto partition = topic.partitions[turn_++ % topic.partitions.size()];
    MR_CO_TRY(auto batch, batch_of(share));
    MR_CO_TRY(auto* leader, co_await cluster->leader_of(partition));
    kafka::ProduceRequest request;
    request.acks = acks_;
    request.timeout_ms = produce_timeout_ms;
    auto& data = request.topic_data.emplace_back();
    data.name = topic.topic.name;
    data.topic_id = topic.topic.id;
    auto& records = data.partition_data.emplace_back();
    records.index = partition.partition;
    records.records = std::move(batch);
    const auto handed = run_.now();
    MR_CO_TRY(const auto answer, co_await leader->call(std::move(request)));
    if (answer.responses.size() != 1 || answer.responses[0].partition_responses.size() != 1) {
      co_return Error{Errc::corrupt, "the broker answered for another partition"};
    }
    const auto& produced = answer.responses[0].partition_responses[0];
    if (const ErrorCode code{produced.error_code}; code != ErrorCode::none) {
      const TopicPartition id{topic.topic.name, partition.partition};
      co_return error_of(code, to_string(id) + " " +
                                   std::string(produced.error_message.value_or("")) +
                                   "; bench does not send again");
    }
    acknowledged(share, handed);
    co_return {};
  }

  void acknowledged(const Share& share, MonoTime handed) {
    const auto now = run_.now();
    const auto microseconds = [now](MonoTime since) {
      return std::chrono::duration_cast<std::chrono::microseconds>(now - since).count();
    };
    counts_.count(share.messages, run_.settings().message_bytes, now);
    if (!pace_.paced()) {
      counts_.latency.add(microseconds(handed), static_cast<std::uint64_t>(share.messages));
      return;
    }
    for (std::int64_t at = 0; at < share.messages; ++at) {
      counts_.latency.add(microseconds(pace_.due(share.first + at)));
    }
  }

  BenchRun& run_;
  BenchCounts& counts_;
  const bool stamped_;
  const std::int16_t acks_;
  const CompressionId compression_;
  std::vector<std::byte> pool_;
  std::size_t pool_at_ = 0;
  Pace pace_;
  const std::int64_t batch_messages_;
  std::int64_t taken_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace

Task<> bench_produce(BenchRun& run, BenchCounts& counts, bool stamped) {
  Producers producers(run, counts, stamped);
  co_return co_await producers.run();
}

}  // namespace millrace::kernel::cli
