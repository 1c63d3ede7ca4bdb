#include <algorithm>
#include <cstring>

#include "kernel/cli/batch_sender.h"
#include "kernel/cli/bench_run.h"

namespace millrace::kernel::cli {

namespace {

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

// A connection, and who sends over it: a sender for each request that may be under way, so that
// whichever has to be sent again finds its place.
struct Line {
  std::unique_ptr<ClusterClient> cluster;
  TopicInfo topic;
  std::vector<std::unique_ptr<BatchSender>> senders;
  std::vector<BatchSender*> idle;
};

class Producers {
 public:
  Producers(BenchRun& run, BenchCounts& counts, bool stamped)
      : run_(run),
        counts_(counts),
        stamped_(stamped),
        pool_(letters(run.environment().random(), pool_bytes + run.settings().message_bytes)),
        pace_(run.now(), run.settings().rate),
        batch_messages_(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(run.settings().batch_bytes /
                                         std::max<std::size_t>(run.settings().message_bytes, 1)))) {
  }

  Task<> run() {
    std::vector<std::unique_ptr<Line>> lines;
    for (std::size_t at = 0; at < run_.settings().connections; ++at) {
      MR_CO_TRY(auto line, co_await connect());
      lines.push_back(std::move(line));
    }
    pace_ = Pace(run_.now(), run_.settings().rate);
    counts_.first = pace_.start();
    Shard& shard = co_await this_shard();
    std::vector<Pending<>> workers;
    for (auto& line : lines) {
      workers.push_back(start(shard, work(line.get()), co_await this_scope()));
    }
    for (auto& worker : workers) {
      auto ended = co_await to_end(std::move(worker));
      if (!ended && ended.error().code != Errc::cancelled) run_.fail(ended.error());
    }
    co_return {};
  }

 private:
  struct Share {
    std::int64_t first = 0;
    std::int64_t messages = 0;
  };

  // Before the clock runs.
  Task<std::unique_ptr<Line>> connect() {
    auto line = std::make_unique<Line>();
    MR_CO_TRY(line->cluster, co_await run_.connect());
    auto name = run_.topic().topic.name;
    MR_CO_TRY(line->topic, co_await line->cluster->topic(std::move(name)));
    for (const auto& partition : line->topic.partitions) {
      MR_CO_CHECK(co_await line->cluster->leader_of(partition));
    }
    const SendSettings settings{.acks = acks_of(run_.settings().acks),
                                .compression = compression_of(run_.settings().compression)};
    for (std::size_t at = 0; at < run_.settings().in_flight; ++at) {
      MR_CO_TRY(const auto self, co_await ask_producer_id(*line->cluster));
      line->senders.push_back(
          std::make_unique<BatchSender>(*line->cluster, line->topic, self, settings));
      line->idle.push_back(line->senders.back().get());
    }
    co_return std::move(line);
  }

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

  // One connection, until all its requests have ended, whatever ends them.
  Task<> work(Line* line) {
    Gate gate;
    Event answered;
    auto handed_out = co_await hand_out(line, &gate, &answered);
    CancelScope never;
    auto closing = gate.close().within(never);
    MR_CO_CHECK(co_await std::move(closing));
    co_return handed_out;
  }

  // Requests follow each other, as many as may be under way.
  Task<> hand_out(Line* line, Gate* gate, Event* answered) {
    Shard& shard = co_await this_shard();
    while (!run_.stopping() && !all_taken()) {
      if (line->idle.empty()) {
        MR_CO_CHECK(co_await answered->wait());
        continue;
      }
      const auto share = take();
      if (share.messages == 0) {
        const auto wait = pace_.due(taken_) - run_.now();
        if (wait > Duration(0)) MR_CO_CHECK(co_await sleep(wait));
        continue;
      }
      MR_CO_TRY(auto pass, gate->enter());
      auto* sender = line->idle.back();
      line->idle.pop_back();
      spawn(shard, send(line, sender, share, std::move(pass), answered), "bench",
            co_await this_scope());
    }
    co_return {};
  }

  void fill(BatchBuilder& builder, const Share& share) {
    const auto bytes = run_.settings().message_bytes;
    const auto wall = run_.environment().clock().wall();
    for (std::int64_t at = 0; at < share.messages; ++at) {
      pool_at_ = (pool_at_ + pool_step) % pool_bytes;
      auto value = MutableBytes(pool_).subspan(pool_at_, bytes);
      if (stamped_) {
        const auto due = pace_.due(share.first + at).time_since_epoch().count();
        std::memcpy(value.data(), &due, sizeof due);
      }
      builder.add(wall, std::nullopt, value);
    }
  }

  Task<> send(Line* line, BatchSender* sender, Share share, Gate::Pass pass, Event* answered) {
    auto sent = co_await send_batch(sender, share);
    if (!sent && sent.error().code != Errc::cancelled) run_.fail(sent.error());
    line->idle.push_back(sender);
    pass = {};
    answered->notify_all();
    co_return {};
  }

  Task<> send_batch(BatchSender* sender, Share share) {
    const auto partition = turn_++ % run_.topic().partitions.size();
    auto builder = sender->builder(partition);
    fill(builder, share);
    MR_CO_TRY(auto batch, sender->seal(partition, builder, run_.codecs()));
    const auto handed = run_.now();
    MR_CO_CHECK(co_await sender->send(partition, std::move(batch)));
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
