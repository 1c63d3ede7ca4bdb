// millraced: argv -> configuration -> engine -> exit code.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <thread>

#include "kernel/daemon/arguments.h"
#include "kernel/daemon/engine.h"
#include "kernel/env/block_on.h"
#include "kernel/env/real_environment.h"
#include "kernel/log/metrics_registry.h"
#include "kernel/log/stderr_log.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {
namespace {

// What a stop by signal leaves to requests in flight; the contract is a clean end within 5 s.
constexpr Duration stop_grace = std::chrono::seconds(3);
constexpr unsigned shards_default_max = 4;

// Signals are taken by the main thread alone, which waits for them; so they are blocked before any
// other thread starts.
class Signals {
 public:
  Signals() {
    std::signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  int wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }

 private:
  sigset_t set_;
};

Exit exit_of(const Engine& engine, const Error& error) {
  switch (engine.step()) {
    case Engine::Step::plugins: return Exit::bad_config;
    case Engine::Step::listen:
      return error.code == Errc::invalid_argument ? Exit::bad_config : Exit::unavailable;
    case Engine::Step::data: break;
    case Engine::Step::running: return Exit::internal;
  }
  switch (error.code) {
    case Errc::conflict:
    case Errc::io:
    case Errc::not_found: return Exit::cannot_create;
    case Errc::corrupt: return Exit::bad_data;
    case Errc::timed_out:
    case Errc::closed: return Exit::unavailable;
    default: return Exit::internal;
  }
}

unsigned shards_of(const BrokerSettings& settings) {
  if (settings.shards > 0) return settings.shards;
  // The other half of the cores is for workers, the system's network and what else runs there.
  return std::clamp(std::thread::hardware_concurrency() / 2, 1U, shards_default_max);
}

Exit serve(Plan plan, RealEnvironment& environment, LogSink& sink, Metrics& metrics,
           const Signals& signals) {
  const Log log(sink, "broker");
  Shard& control = environment.control();
  Engine engine(std::move(plan), {environment, sink, metrics});

  const auto started = block_on(control, [&engine] { return engine.start(); });
  if (!started) {
    log.error("the broker could not start", {{"reason", to_string(started.error())}});
    return exit_of(engine, started.error());
  }
  log.info("ready");

  int signal = signals.wait();
  while (signal == SIGHUP) {
    log.warning("SIGHUP: no option can be changed in a running broker yet; restart it instead");
    signal = signals.wait();
  }
  log.info("stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  const auto stopped = block_on(control, [&engine] { return engine.stop(stop_grace); });
  if (!stopped) {
    log.error("the broker did not stop cleanly", {{"reason", to_string(stopped.error())}});
    return Exit::internal;
  }
  log.info("stopped");
  return Exit::clean;
}

Exit run(int argc, char** argv) {
  auto parsed = parse_arguments(argc, argv);
  if (const auto* exit = std::get_if<Exit>(&parsed)) return *exit;
  const auto& arguments = std::get<Arguments>(parsed);

  const auto refuse = [](const ConfigErrors& errors) {
    for (const auto& error : errors) std::cerr << to_string(error) << '\n';
    return Exit::bad_config;
  };
  const auto config = Config::load(arguments.config);
  if (!config) return refuse(config.error());
  auto plan = make_plan(*config, broker_defaults());
  if (!plan) return refuse(plan.error());
  // What the topics would inherit has to be right before there is one.
  if (const auto topic = TopicConfig::parse(plan->defaults, {}); !topic) {
    return refuse({{{}, "[defaults]: " + topic.error().detail}});
  }
  if (arguments.check) {
    std::cout << "the configuration is good\n";
    return Exit::clean;
  }

  const Signals signals;
  StderrLog sink(plan->log.level, plan->log.levels, plan->log.format);
  MetricsRegistry metrics;
  auto environment = RealEnvironment::start({.shards = shards_of(plan->broker), .workers = 2},
                                            Log(sink, "environment"));
  if (!environment) {
    std::cerr << "millraced: " << to_string(environment.error()) << '\n';
    return Exit::internal;
  }
  const auto exit = serve(*std::move(plan), **environment, sink, metrics, signals);
  (*environment)->stop();
  return exit;
}

}  // namespace
}  // namespace millrace::kernel

int main(int argc, char** argv) {
  using millrace::kernel::Exit;
  try {
    return static_cast<int>(millrace::kernel::run(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "millraced: %s\n", error.what());
    return static_cast<int>(Exit::internal);
  }
}
