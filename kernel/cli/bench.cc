// millrace bench produce|consume|end-to-end: load on a cluster, and what it was seen to do.
#include <array>
#include <cstdio>
#include <ctime>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/filelog/text.h>
#include <millrace/utf8.h>

#include "kernel/cli/bench_run.h"
#include "kernel/cli/context.h"
#include "kernel/cli/output.h"
#include "kernel/cli/progress_line.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;
using filelog::say;

constexpr std::int64_t seconds_default = 10;
constexpr std::int64_t consumed_default = 100'000;
constexpr std::int64_t paced_default = 1000;
constexpr Duration look_interval = std::chrono::milliseconds(20);
constexpr Duration rest_wait_max = std::chrono::seconds(10);

enum class Kind { produce, consume, end_to_end };

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::produce: return "produce";
    case Kind::consume: return "consume";
    case Kind::end_to_end: break;
  }
  return "end-to-end";
}

// What the times are of. A figure without this says nothing.
std::string latency_of(Kind kind, const BenchSettings& settings) {
  switch (kind) {
    case Kind::produce:
      if (settings.rate > 0) {
        return "from when a message was due until it was acknowledged: waiting behind others "
               "counts";
      }
      return "from when a batch was handed to its connection until it was acknowledged, with as "
             "much load as is taken; its messages count with its time";
    case Kind::consume:
      return "of the fetch requests that brought messages, until the answer was here";
    case Kind::end_to_end: break;
  }
  return "from when a message was due until it was read and opened, in the same process";
}

// Threads of this process, all together.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::string decimal(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string milliseconds(std::uint64_t microseconds) {
  return decimal(static_cast<double>(microseconds) / 1000, 3) + " ms";
}

class Bench {
 public:
  Bench(Environment& environment, const Context& context, Kind kind, BenchSettings settings,
        MadeTopic& made_topic)
      : environment_(environment),
        json_(context.output == OutputFormat::json),
        bootstrap_(context.bootstrap),
        kind_(kind),
        settings_(std::move(settings)),
        made_topic_(made_topic),
        line_(environment.clock(), std::chrono::seconds(1)) {}

  Task<> run(Codecs codecs) {
    BenchRun run(environment_, bootstrap_, settings_, codecs, made_topic_);
    auto measured = co_await supervised(run, run.begin(), 0);
    if (measured) measured = co_await measure(run);
    line_.clear();
    const bool interrupted = run.interrupt().asked();
    const bool sound = measured && !run.failure();
    if (counts_->messages > 0 && (sound || interrupted)) {
      report(run, interrupted);
    } else if (interrupted) {
      std::cerr << "millrace: interrupted before anything was measured\n";
    }
    std::cout.flush();
    auto removed = co_await run.end();
    if (!removed && (!sound || interrupted)) {
      std::cerr << "millrace: " << removed.error().detail << '\n';
    }
    run.interrupt().finish();
    if (run.failure()) co_return *run.failure();
    MR_CO_CHECK(std::move(measured));
    if (unread_ > 0) {
      co_return Error{Errc::timed_out, say(unread_, " messages were not read within 10 s")};
    }
    co_return removed;
  }

 private:
  Task<> measure(BenchRun& run) {
    switch (kind_) {
      case Kind::produce: {
        began_cpu_ = cpu_seconds();
        co_return co_await supervised(run, bench_produce(run, *counts_, false), settings_.seconds);
      }
      case Kind::consume: co_return co_await consume(run);
      case Kind::end_to_end: break;
    }
    began_cpu_ = cpu_seconds();
    co_return co_await end_to_end(run);
  }

  // Waits for `task`, tells how far it is, and ends it: softly when the time is up, at once where
  // somebody asks for it.
  Task<> supervised(BenchRun& run, Task<> task, std::int64_t seconds) {
    Shard& shard = co_await this_shard();
    CancelScope scope(co_await this_scope());
    const auto began = run.now();
    auto work = start(shard, std::move(task), &scope);
    while (!work.is_ready()) {
      auto slept = co_await sleep(look_interval);
      if (!slept || run.interrupt().asked()) scope.cancel();
      if (seconds > 0 && run.now() - began >= std::chrono::seconds(seconds)) run.stop();
      tell();
    }
    co_return co_await work;
  }

  void tell() {
    if (!line_.due()) return;
    const auto now = environment_.clock().now();
    const auto passed = std::chrono::duration<double>(now - told_at_).count();
    const auto more = counts_->messages - told_messages_;
    const auto rate = static_cast<double>(more) / std::max(passed, 0.001);
    line_.show(say(phase_, ": ", counts_->messages, " messages, now ",
                   static_cast<std::int64_t>(rate), "/s, ",
                   human_bytes(rate * static_cast<double>(settings_.message_bytes)), "/s, p99 ",
                   milliseconds(counts_->latency.quantile(0.99))));
    told_at_ = now;
    told_messages_ = counts_->messages;
  }

  Task<> consume(BenchRun& run) {
    if (run.made_topic()) {
      phase_ = "filling the topic";
      auto filled = co_await supervised(run, bench_produce(run, *counts_, false), 0);
      // That is not what is measured.
      *counts_ = {};
      if (!filled || run.failure() || run.stopping()) co_return filled;
      told_messages_ = 0;
    }
    phase_ = name_of(kind_);
    ConsumeGoal goal;
    MR_CO_TRY(goal.from, co_await bench_bounds(run, OffsetSpec::earliest));
    MR_CO_TRY(goal.to, co_await bench_bounds(run, OffsetSpec::latest));
    goal.messages = settings_.messages;
    if (goal.from == goal.to) {
      co_return Error{Errc::not_found,
                      "topic " + in_quotes(run.topic().topic.name) +
                          " is empty; without --topic one is made and filled for this"};
    }
    began_cpu_ = cpu_seconds();
    co_return co_await supervised(run, bench_consume(run, *counts_, std::move(goal)),
                                  settings_.seconds);
  }

  Task<> end_to_end(BenchRun& run) {
    ConsumeGoal goal{.from = {}, .to = {}, .messages = 0, .stamped = true};
    MR_CO_TRY(goal.from, co_await bench_bounds(run, OffsetSpec::latest));
    co_return co_await supervised(run, both_ends(run, std::move(goal)), 0);
  }

  Task<> both_ends(BenchRun& run, ConsumeGoal goal) {
    Shard& shard = co_await this_shard();
    auto reading =
        start(shard, bench_consume(run, *counts_, std::move(goal)), co_await this_scope());
    // Until the readers are there, or cannot be.
    auto sent = Result<>();
    while (sent && !counts_->first && !reading.is_ready()) {
      sent = co_await sleep(std::chrono::milliseconds(1));
    }
    if (sent) sent = co_await send_stamped(run);
    run.stop();
    auto read = co_await to_end(std::move(reading));
    if (!read && read.error().code != Errc::cancelled) co_return read;
    co_return sent;
  }

  // Until all is read, or that is waited for in vain.
  Task<> send_stamped(BenchRun& run) {
    const auto sent = std::make_unique<BenchCounts>();
    // With a number of messages they end by themselves, else with the time.
    auto sending = bench_produce(run, *sent, true);
    auto produced = co_await std::move(sending);
    if (!produced && produced.error().code != Errc::cancelled) run.fail(produced.error());
    const auto until = run.now() + rest_wait_max;
    while (counts_->messages < sent->messages && !run.failure() && run.now() < until) {
      MR_CO_CHECK(co_await sleep(look_interval));
    }
    unread_ = std::max<std::int64_t>(sent->messages - counts_->messages, 0);
    co_return {};
  }

  void report(const BenchRun& run, bool interrupted) const {
    const auto& counts = *counts_;
    const auto seconds = counts.seconds();
    const auto per_second = static_cast<double>(counts.messages) / std::max(seconds, 1e-9);
    const auto bytes = static_cast<double>(counts.bytes) / std::max(seconds, 1e-9);
    const auto cpu = (cpu_seconds() - began_cpu_) / std::max(seconds, 1e-9);
    const auto& latency = counts.latency;
    if (json_) {
      print_json(json::object{{"bench", name_of(kind_)},
                              {"topic", run.topic().topic.name},
                              {"topic_made", settings_.topic.empty()},
                              {"partitions", run.topic().partitions.size()},
                              {"connections", settings_.connections},
                              {"acks", settings_.acks},
                              {"codec", settings_.compression},
                              {"rate", settings_.rate},
                              {"messages", counts.messages},
                              {"bytes", counts.bytes},
                              {"unread", unread_},
                              {"waits", run.waits()},
                              {"microseconds", static_cast<std::int64_t>(seconds * 1e6)},
                              {"messages_per_second", static_cast<std::int64_t>(per_second)},
                              {"bytes_per_second", static_cast<std::int64_t>(bytes)},
                              {"latency_us", json::object{{"p50", latency.quantile(0.5)},
                                                          {"p99", latency.quantile(0.99)},
                                                          {"p99_9", latency.quantile(0.999)},
                                                          {"max", latency.max()}}},
                              {"latency_of", latency_of(kind_, settings_)},
                              {"client_cpu_percent", static_cast<std::int64_t>(cpu * 100)},
                              {"interrupted", interrupted}});
      return;
    }
    std::cout << name_of(kind_) << ": " << counts.messages << " messages, "
              << human_bytes(static_cast<double>(counts.bytes)) << " in " << decimal(seconds, 2)
              << " s" << (interrupted ? ", interrupted" : "") << '\n'
              << "  " << decimal(per_second, 0) << " messages/s, " << decimal(bytes / 1e6, 1)
              << " MB/s\n"
              << "  latency p50 " << milliseconds(latency.quantile(0.5)) << ", p99 "
              << milliseconds(latency.quantile(0.99)) << ", p99.9 "
              << milliseconds(latency.quantile(0.999)) << ", max " << milliseconds(latency.max())
              << '\n'
              << "  latency is " << latency_of(kind_, settings_) << '\n'
              << "  this client, one thread that checks and opens what it reads, used "
              << decimal(cpu * 100, 0) << " % of a core"
              << (cpu > 0.9 ? ": it is what limits this, not the broker" : "") << '\n';
    if (run.waits() > 0) {
      std::cout << "  requests had to wait for a leader " << run.waits() << " times\n";
    }
    const auto reached = 0.99 * static_cast<double>(settings_.rate);
    if (kind_ != Kind::consume && per_second < reached) {
      std::cout << "  the rate of " << settings_.rate << " messages/s was not reached\n";
    }
  }

  Environment& environment_;
  const bool json_;
  const std::string bootstrap_;
  const Kind kind_;
  const BenchSettings settings_;
  MadeTopic& made_topic_;
  ProgressLine line_;
  std::string phase_{name_of(kind_)};
  std::unique_ptr<BenchCounts> counts_ = std::make_unique<BenchCounts>();
  MonoTime told_at_ = environment_.clock().now();
  std::int64_t told_messages_ = 0;
  std::int64_t unread_ = 0;
  double began_cpu_ = 0;
};

// What is not given.
BenchSettings completed(Kind kind, BenchSettings settings) {
  const bool reads_what_is_there = kind == Kind::consume && !settings.topic.empty();
  if (kind == Kind::consume && settings.topic.empty() && settings.messages == 0) {
    settings.messages = consumed_default;
  }
  if (kind == Kind::end_to_end && settings.rate == 0) settings.rate = paced_default;
  if (settings.messages == 0 && settings.seconds == 0 && !reads_what_is_there) {
    settings.seconds = seconds_default;
  }
  // Both ends end after so many messages, for what was sent is waited for.
  if (kind == Kind::end_to_end && settings.seconds > 0) {
    const auto by_time = settings.rate * settings.seconds;
    settings.messages = settings.messages > 0 ? std::min(settings.messages, by_time) : by_time;
  }
  return settings;
}

Task<> bench(Environment& environment, const Context& context, Kind kind, BenchSettings settings,
             MadeTopic& made_topic) {
  MR_CO_TRY(const auto loaded, LoadedCodecs::load(context, environment));
  Bench bench(environment, context, kind, completed(kind, std::move(settings)), made_topic);
  co_return co_await bench.run(loaded.codecs());
}

void add_options(CLI::App& verb, Kind kind, BenchSettings& settings) {
  constexpr std::int64_t many = std::int64_t{1} << 40;
  constexpr std::int64_t stamp_bytes = sizeof(Duration::rep);
  constexpr std::int64_t bytes_max = 100'000'000;
  const bool sends = kind != Kind::consume;
  verb.add_option("--topic", settings.topic,
                  kind == Kind::consume
                      ? "read this one, from its start; default: one is made, filled and removed"
                      : "default: one is made and removed")
      ->type_name("NAME")
      ->check(topic_name);
  verb.add_option("--messages", settings.messages, "end after so many")
      ->check(whole_number(std::int64_t{1}, many));
  verb.add_option("--seconds", settings.seconds,
                  kind == Kind::consume ? "end after so long" : "end after so long; default: 10")
      ->check(whole_number(std::int64_t{1}, std::int64_t{1'000'000}));
  verb.add_option("--size", settings.message_bytes, "bytes of a message that is sent")
      ->check(whole_number(kind == Kind::end_to_end ? stamp_bytes : std::int64_t{1}, bytes_max))
      ->capture_default_str();
  if (sends) {
    verb.add_option("--rate", settings.rate,
                    kind == Kind::end_to_end ? "messages a second; default: 1000"
                                             : "messages a second; default: as fast as it goes")
        ->check(whole_number(std::int64_t{1}, std::int64_t{1'000'000'000}));
  }
  verb.add_option("--acks", settings.acks, "1 or all")
      ->check(one_of({"1", "all"}))
      ->capture_default_str();
  verb.add_option("--codec", settings.compression, "none, gzip, snappy, lz4 or zstd")
      ->check(one_of({"none", "gzip", "snappy", "lz4", "zstd"}))
      ->capture_default_str();
  verb.add_option("--partitions", settings.partitions, "of the topic that is made")
      ->check(whole_number(std::int32_t{1}, std::int32_t{10'000}))
      ->capture_default_str();
  verb.add_option("--replication-factor", settings.replicas,
                  "of the topic that is made; default: the cluster's")
      ->check(whole_number(std::int64_t{1}, std::int64_t{32'767}));
  verb.add_option("--connections", settings.connections, "each with all the brokers")
      ->check(whole_number(std::int64_t{1}, std::int64_t{1000}))
      ->capture_default_str();
  verb.add_option("--in-flight", settings.in_flight,
                  "requests of a connection that are not answered")
      ->check(whole_number(std::int64_t{1}, std::int64_t{1000}))
      ->capture_default_str();
  verb.add_option("--batch", settings.batch_bytes, "bytes of the messages that go together at most")
      ->check(whole_number(std::int64_t{1}, bytes_max))
      ->capture_default_str();
}

}  // namespace

void add_bench_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand(
      "bench", "put load on a cluster and measure: messages and bytes a second, latency");
  verb->require_subcommand(1);
  const auto add = [&](Kind kind, const char* what, const std::vector<std::string>& examples) {
    auto* one = verb->add_subcommand(std::string(name_of(kind)), what);
    const auto settings = std::make_shared<BenchSettings>();
    add_options(*one, kind, *settings);
    add_examples(*one, examples);
    one->callback([&context, &action, kind, settings] {
      action = [&context, kind, settings] {
        MadeTopic made_topic;
        return run(
            [&](Environment& environment) {
              return bench(environment, context, kind, *settings, made_topic);
            },
            [&made_topic] {
              const auto name = made_topic.name();
              if (name.empty()) return std::string();
              return "millrace: topic " + name + " is left behind: millrace topic delete " + name +
                     '\n';
            });
      };
    });
  };
  add(Kind::produce, "send messages; without --rate as fast as the broker takes them",
      {"millrace bench produce --seconds 5",
       "millrace bench produce --topic orders --rate 5000 --size 200 --acks 1 --codec lz4",
       "millrace -o json bench produce --messages 1000000 --partitions 6 --connections 2"});
  add(Kind::consume,
      "read messages as fast as they come; no consumer group has a part in it: what kafka-consumer-"
      "perf-test counts besides, joining a group, is not of the broker's reading",
      {"millrace bench consume --messages 500000", "millrace bench consume --topic orders"});
  add(Kind::end_to_end, "send at a rate and read: how long a message is under way",
      {"millrace bench end-to-end --rate 1000 --seconds 5",
       "millrace bench end-to-end --rate 200 --size 100 --partitions 3"});
}

}  // namespace millrace::kernel::cli
