// millraced: argv -> configuration -> engine -> exit code.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <optional>
#include <thread>

#include "kernel/broker/broker_parts.h"
#include "kernel/config/text.h"
#include "kernel/daemon/arguments.h"
#include "kernel/daemon/engine.h"
#include "kernel/daemon/process.h"
#include "kernel/daemon/reload.h"
#include "kernel/daemon/service_manager.h"
#include "kernel/daemon/service_reports.h"
#include "kernel/daemon/setting_problems.h"
#include "kernel/env/block_on.h"
#include "kernel/env/real_environment.h"
#include "kernel/log/fatal_signals.h"
#include "kernel/log/metrics_registry.h"
#include "kernel/log/stderr_log.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel {
namespace {

// What a stop by signal leaves to requests in flight; the contract is a clean end within 5 s.
constexpr Duration stop_grace = std::chrono::seconds(3);
// A stop that meets a start lets it come to its end for so long, and then ends the process as a
// kill would: a long recovery or takeover begins anew with the next start.
constexpr Duration start_grace = std::chrono::seconds(2);
constexpr Duration last_lines_max = std::chrono::milliseconds(500);
constexpr unsigned shards_default_max = 4;

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
    case Errc::corrupt:
    case Errc::incompatible: return Exit::bad_data;
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

// socket.send.buffer.bytes; -1 there is none here.
std::optional<int> send_buffer_of(const Plan& plan) {
  const auto bytes = BrokerConfig{.defaults = plan.defaults}.number_of("socket.send.buffer.bytes",
                                                                       std::int64_t{256} << 10);
  if (bytes < 0) return std::nullopt;
  return static_cast<int>(bytes);
}

std::expected<Plan, ConfigErrors> read_plan(const ConfigSource& source) {
  const auto config = Config::load(source);
  if (!config) return std::unexpected(config.error());
  auto plan = make_plan(*config, broker_defaults(), topic_table_settings());
  if (!plan) return plan;
  auto problems = setting_problems(*plan);
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return plan;
}

LogLevels levels_of(const LogSettings& settings) {
  return {.others = settings.level, .of = settings.levels};
}

// Takes over what can be changed in a running broker: the options declared as reloadable.
void reload(const ConfigSource& source, const std::vector<SettingFact>& running, StderrLog& sink,
            const Log& log) {
  const auto plan = read_plan(source);
  if (!plan) {
    for (const auto& error : plan.error()) {
      log.error("SIGHUP: the configuration is wrong; nothing was changed",
                {{"error", to_string(error)}});
    }
    return;
  }
  sink.set_levels(levels_of(plan->log));
  log.info("SIGHUP: log levels are as configured now");
  const auto waiting = changed_at_restart(running, plan->settings);
  if (waiting.empty()) return;
  log.warning("SIGHUP: other options have changed too; they count from the next start",
              {{"options", joined(waiting)}});
}

const char* name_of_signal(int signal) { return signal == SIGTERM ? "SIGTERM" : "SIGINT"; }

// Nothing of ours is torn down: threads are at work on it.
[[noreturn]] void end_at_once(const StderrLog& sink, Exit exit) {
  const auto give_up_at = std::chrono::steady_clock::now() + last_lines_max;
  while (!sink.idle() && std::chrono::steady_clock::now() < give_up_at) std::this_thread::yield();
  std::_Exit(static_cast<int>(exit));
}

// Begins a task of the control thread; `signals` is woken when it ends.
template <class F>
std::future<Result<>> begin(Shard& control, const Signals& signals, F make) {
  std::promise<Result<>> promise;
  auto ended = promise.get_future();
  const auto body = [](F task, const Signals& waiting, std::promise<Result<>> done) -> Task<> {
    auto result = co_await task();
    done.set_value(std::move(result));
    waiting.wake();
    co_return {};
  };
  control.post([&control, &signals, body, make, done = std::move(promise)]() mutable {
    spawn(control, body(std::move(make), signals, std::move(done)), "main");
  });
  return ended;
}

bool is_over(const std::future<Result<>>& task) {
  return task.wait_for(Duration::zero()) == std::future_status::ready;
}

// The service manager hears what the broker does until a signal comes.
int next_signal(const Signals& signals, const Engine& engine, ServiceReports& reports) {
  while (true) {
    const auto pause = reports.pause();
    if (!pause) return signals.wait();
    const auto signal = signals.wait_for(*pause);
    if (signal) return *signal;
    reports.report(engine.doing());
  }
}

// What came while the broker started.
struct Starting {
  Result<> result;
  bool reload = false;
  std::optional<int> stop;
};

Starting start(Engine& engine, Shard& control, const Signals& signals, ServiceReports& reports,
               const StderrLog& sink, const Log& log) {
  Starting starting;
  auto ended = begin(control, signals, [&engine] { return engine.start(); });
  reports.report(engine.doing());
  while (!is_over(ended) && !starting.stop) {
    const int signal = next_signal(signals, engine, reports);
    if (signal == SIGHUP) starting.reload = true;
    if (signal == SIGTERM || signal == SIGINT) starting.stop = signal;
  }
  if (starting.stop) {
    const auto give_up_at = std::chrono::steady_clock::now() + start_grace;
    while (!is_over(ended) && std::chrono::steady_clock::now() < give_up_at) {
      static_cast<void>(signals.wait_for(give_up_at - std::chrono::steady_clock::now()));
    }
    if (!is_over(ended)) {
      log.warning("ended before it had started; what was begun is done at the next start",
                  {{"signal", name_of_signal(*starting.stop)}});
      end_at_once(sink, Exit::clean);
    }
  }
  starting.result = ended.get();
  return starting;
}

Exit serve(Plan plan, const ConfigSource& source, RealEnvironment& environment, StderrLog& sink,
           Metrics& metrics, const Signals& signals) {
  const Log log(sink, "broker");
  Shard& control = environment.control();
  const auto settings = plan.settings;
  Engine engine(std::move(plan), {environment, sink, metrics}, &sink);
  ServiceManager manager(ServiceManager::variables(), ::getpid(), log);
  ServiceReports reports(manager, environment, log);

  const auto started = start(engine, control, signals, reports, sink, log);
  if (!started.result) {
    const auto reason = to_string(started.result.error());
    log.error("the broker could not start", {{"reason", reason}});
    reports.failed(reason);
    return exit_of(engine, started.result.error());
  }
  log.info("ready");
  reports.ready(engine.doing());

  int signal = started.stop.value_or(started.reload ? SIGHUP : Signals::woken);
  while (signal == SIGHUP || signal == Signals::woken) {
    if (signal == SIGHUP) {
      reports.reloading();
      reload(source, settings, sink, log);
      reports.reloaded();
    }
    signal = next_signal(signals, engine, reports);
  }
  log.info("stopping", {{"signal", name_of_signal(signal)}});
  auto stopping = begin(control, signals, [&engine] { return engine.stop(stop_grace); });
  reports.stopping("stopping");
  while (!is_over(stopping)) static_cast<void>(next_signal(signals, engine, reports));
  const auto stopped = stopping.get();
  if (!stopped) {
    log.error("the broker did not stop cleanly", {{"reason", to_string(stopped.error())}});
    return Exit::internal;
  }
  log.info("stopped");
  return Exit::clean;
}

// What needs code of the plugins to be found out.
Exit check(Plan plan, RealEnvironment& environment, StderrLog& sink, Metrics& metrics) {
  Engine engine(std::move(plan), {environment, sink, metrics});
  const auto wrong = block_on(environment.control(), [&engine] { return engine.check(); });
  if (!wrong) {
    std::cerr << "millraced: " << to_string(wrong.error()) << '\n';
    return Exit::internal;
  }
  for (const auto& error : *wrong) std::cerr << error.detail << '\n';
  if (!wrong->empty()) return Exit::bad_config;
  std::cout << "the configuration is good\n";
  return Exit::clean;
}

Exit run(int argc, char** argv, const Signals& signals) {
  auto parsed = parse_arguments(argc, argv);
  if (const auto* exit = std::get_if<Exit>(&parsed)) return *exit;
  const auto& arguments = std::get<Arguments>(parsed);

  auto plan = read_plan(arguments.config);
  if (!plan) {
    for (const auto& error : plan.error()) std::cerr << to_string(error) << '\n';
    return Exit::bad_config;
  }
  // Who asks for a check wants the verdict alone.
  const auto levels =
      arguments.check ? LogLevels{.others = LogLevel::error, .of = {}} : levels_of(plan->log);
  StderrLog sink(levels, plan->log.format,
                 is_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM")));
  const LogBeforeFatalSignals log_first(sink);
  raise_open_files_limit(Log(sink, "environment"));
  MetricsRegistry metrics;
  metrics.gauge("millrace_build_info", "This build", {{"version", MILLRACE_VERSION}}).set(1);
  auto environment = RealEnvironment::start(
      {.shards = shards_of(plan->broker), .workers = 2, .send_buffer_bytes = send_buffer_of(*plan)},
      Log(sink, "environment"), metrics);
  if (!environment) {
    std::cerr << "millraced: " << to_string(environment.error()) << '\n';
    return Exit::internal;
  }
  const auto exit = arguments.check ? check(*std::move(plan), **environment, sink, metrics)
                                    : serve(*std::move(plan), arguments.config, **environment, sink,
                                            metrics, signals);
  (*environment)->stop();
  // An operator that never came back is still in there.
  if ((*environment)->threads_lent() > 0) end_at_once(sink, exit);
  return exit;
}

}  // namespace
}  // namespace millrace::kernel

int main(int argc, char** argv) {
  using millrace::kernel::Exit;
  const millrace::kernel::Signals signals;
  millrace::kernel::fill_standard_descriptors();
  try {
    return static_cast<int>(millrace::kernel::run(argc, argv, signals));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "millraced: %s\n", error.what());
    return static_cast<int>(Exit::internal);
  }
}
