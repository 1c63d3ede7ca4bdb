// millraced: argv -> configuration -> engine -> exit code.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "kernel/broker/broker_parts.h"
#include "kernel/config/text.h"
#include "kernel/daemon/arguments.h"
#include "kernel/daemon/engine.h"
#include "kernel/daemon/plan_remarks.h"
#include "kernel/daemon/process.h"
#include "kernel/daemon/read_plan.h"
#include "kernel/daemon/reload.h"
#include "kernel/daemon/reload_files.h"
#include "kernel/daemon/service_manager.h"
#include "kernel/daemon/service_reports.h"
#include "kernel/env/block_on.h"
#include "kernel/env/real_environment.h"
#include "kernel/host/load_guard.h"
#include "kernel/host/trial.h"
#include "kernel/log/fatal_signals.h"
#include "kernel/log/metrics_registry.h"
#include "kernel/log/stderr_log.h"

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

// Two may wait for the disk on behalf of who reads old records; the others open batches and bring
// records to disk meanwhile.
constexpr unsigned workers_count = 4;

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

LogLevels levels_of(const LogSettings& settings) {
  return {.others = settings.level, .of = settings.levels};
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

// What a reload of a running broker needs.
struct Running {
  const ConfigSource& source;
  std::string data;
  RealEnvironment& environment;
  const Signals& signals;
  StderrLog& sink;
  const Log& log;
  Engine& engine;
  ServiceReports& reports;
};

std::string refused(const Log& log, const std::vector<std::string>& errors) {
  for (const auto& error : errors) {
    log.error("SIGHUP: the configuration is wrong; nothing was changed", {{"error", error}});
  }
  const auto others = errors.size() - 1;
  return concat("reload refused: ", errors.front(),
                others == 0 ? std::string() : concat(" (and ", others, " more)"));
}

Task<> reload_engine(Engine& engine, Plan wanted, ReloadOutcome& outcome) {
  auto reloading = engine.reload(std::move(wanted));
  MR_CO_TRY(outcome, co_await std::move(reloading));
  co_return {};
}

// Takes over what can be changed in a running broker. Answers what the service manager shows of it.
// A signal that comes meanwhile is left in `next`.
std::string reload(const Running& running, int& next) {
  const auto& log = running.log;
  // A pipe gave what it had to the start; who read it again would wait for ever.
  std::error_code none;
  if (std::filesystem::is_other(running.source.path, none)) {
    return refused(log, {concat(running.source.path, ": a reload needs a regular file")});
  }
  ReloadFiles files(running.environment.files(), running.data, trial_by_this_program());
  auto plan = read_plan(running.source, [&files](const std::string& path, std::string_view kind) {
    return files.load(path, kind);
  });
  if (!plan) {
    std::vector<std::string> errors;
    for (const auto& error : plan.error()) errors.push_back(to_string(error));
    return refused(log, errors);
  }
  const auto levels = levels_of(plan->log);
  ReloadOutcome outcome;
  auto ended = begin(running.environment.control(), running.signals,
                     [&engine = running.engine, &outcome, wanted = *std::move(plan)] {
                       return reload_engine(engine, wanted, outcome);
                     });
  while (!is_over(ended)) {
    const int signal = next_signal(running.signals, running.engine, running.reports);
    if (signal != Signals::woken && next != SIGTERM && next != SIGINT) next = signal;
  }
  const auto reloaded = ended.get();
  if (!reloaded) return refused(log, {reloaded.error().detail});
  running.sink.set_levels(levels);
  log.info("SIGHUP: log levels are as configured now");
  for (const auto& done : outcome.done) log.info("SIGHUP: done", {{"what", done}});
  for (const auto& failed : outcome.failed) {
    log.error("SIGHUP: not done; the next reload tries it again", {{"what", failed}});
  }
  for (const auto& path : files.at_restart()) {
    outcome.at_restart.push_back(concat("the new ", path));
  }
  if (!outcome.at_restart.empty()) {
    log.warning("SIGHUP: other options have changed too; they count from the next start",
                {{"options", joined(outcome.at_restart)}});
  }
  return status_of(outcome);
}

// What a run leaves for its caller to destroy: once no thread of the environment runs any more, for
// on any of them something may still wait for what it has.
using LeftEngine = std::unique_ptr<Engine>;

Exit serve(Plan plan, const ConfigSource& source, RealEnvironment& environment, StderrLog& sink,
           Metrics& metrics, const Signals& signals, LeftEngine& left) {
  const Log log(sink, "broker");
  Shard& control = environment.control();
  for (const auto& warning : warnings_of(plan)) log.warning(warning);
  if (has_no_admin(plan)) {
    log.info("the configuration has no transport http: no /metrics, /healthz and /admin");
  }
  const auto data = std::filesystem::absolute(plan.broker.data).string();
  const HostServices services{environment, sink, metrics, trial_by_this_program()};
  left = std::make_unique<Engine>(std::move(plan), services, &sink);
  auto& engine = *left;
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

  const Running running{source, data, environment, signals, sink, log, engine, reports};
  int signal = started.stop.value_or(started.reload ? SIGHUP : Signals::woken);
  while (signal == SIGHUP || signal == Signals::woken) {
    int next = Signals::woken;
    if (signal == SIGHUP) {
      reports.reloading();
      reports.reloaded(reload(running, next));
    }
    signal = next == Signals::woken ? next_signal(signals, engine, reports) : next;
  }
  log.info("stopping", {{"signal", name_of_signal(signal)}});
  auto stopping = begin(control, signals, [&engine] { return engine.stop(stop_grace); });
  reports.stopping("stopping");
  while (!is_over(stopping)) static_cast<void>(next_signal(signals, engine, reports));
  const auto stopped = stopping.get();
  if (!stopped) {
    log.error("the broker did not stop cleanly", {{"reason", to_string(stopped.error())}});
    return stopped.error().code == Errc::io ? Exit::not_stored : Exit::internal;
  }
  log.info("stopped");
  return Exit::clean;
}

// What needs code of the plugins to be found out.
Exit check(Plan plan, RealEnvironment& environment, StderrLog& sink, Metrics& metrics,
           LeftEngine& left) {
  const auto warnings = warnings_of(plan);
  left = std::make_unique<Engine>(std::move(plan), HostServices{environment, sink, metrics});
  const auto wrong = block_on(environment.control(), [&left] { return left->check(); });
  if (!wrong) {
    std::cerr << "millraced: " << to_string(wrong.error()) << '\n';
    return Exit::internal;
  }
  for (const auto& error : *wrong) std::cerr << error.detail << '\n';
  if (!wrong->empty()) return Exit::bad_config;
  for (const auto& warning : warnings) std::cerr << "warning: " << warning << '\n';
  std::cout << "the configuration is good\n";
  return Exit::clean;
}

// MILLRACE_JOURNAL_SOCKET: another than systemd's own, for tests; empty: none.
std::string journal_socket() {
  const char* other = std::getenv("MILLRACE_JOURNAL_SOCKET");
  return other != nullptr ? other : JournalSocket::usual_path;
}

Exit run(int argc, char** argv, const Signals& signals) {
  auto parsed = parse_arguments(argc, argv);
  if (const auto* exit = std::get_if<Exit>(&parsed)) return *exit;
  const auto& arguments = std::get<Arguments>(parsed);

  auto plan = [&arguments] {
    const LoadGuard guard("millraced", static_cast<int>(Exit::bad_config));
    return read_plan(arguments.config);
  }();
  if (!plan) {
    for (const auto& error : plan.error()) std::cerr << to_string(error) << '\n';
    return Exit::bad_config;
  }
  // Who asks for a check wants the verdict alone.
  const auto levels =
      arguments.check ? LogLevels{.others = LogLevel::error, .of = {}} : levels_of(plan->log);
  StderrLog sink(levels, plan->log.format, is_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM")),
                 journal_socket());
  const LogBeforeFatalSignals log_first(sink);
  raise_open_files_limit(Log(sink, "environment"));
  MetricsRegistry metrics;
  metrics.gauge("millrace_build_info", "This build", {{"version", MILLRACE_VERSION}}).set(1);
  auto environment = RealEnvironment::start({.shards = shards_of(plan->broker),
                                             .workers = workers_count,
                                             .send_buffer_bytes = send_buffer_of(*plan)},
                                            Log(sink, "environment"), metrics);
  if (!environment) {
    std::cerr << "millraced: " << to_string(environment.error()) << '\n';
    return Exit::internal;
  }
  LeftEngine engine;
  const auto exit = arguments.check ? check(*std::move(plan), **environment, sink, metrics, engine)
                                    : serve(*std::move(plan), arguments.config, **environment, sink,
                                            metrics, signals, engine);
  (*environment)->stop();
  // An operator that never came back is still in there.
  if ((*environment)->threads_lent() > 0) end_at_once(sink, exit);
  engine.reset();
  if (const auto tasks = (*environment)->forget_woken(); tasks > 0) {
    const Log log(sink, "broker");
    log.error("something still waited at the end, for what is gone now; it is left as it is",
              {{"tasks", tasks}});
  }
  return exit;
}

}  // namespace
}  // namespace millrace::kernel

int main(int argc, char** argv) {
  using millrace::kernel::Exit;
  if (argc == 3 && std::string_view(argv[1]) == millrace::kernel::trial_argument) {
    return millrace::kernel::run_trial(argv[2]);
  }
  const millrace::kernel::Signals signals;
  millrace::kernel::fill_standard_descriptors();
  try {
    return static_cast<int>(millrace::kernel::run(argc, argv, signals));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "millraced: %s\n", error.what());
    return static_cast<int>(Exit::internal);
  }
}
