// What transports are told of this broker as a running program: <millrace/operations.h> and
// <millrace/plugin_starts.h>.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/operations.h>
#include <millrace/plugin_starts.h>

namespace millrace::kernel {

class StderrLog;

class BrokerOperations final : public Operations, public PluginStarts {
 public:
  /// `log`, whose levels can be changed, outlives this; nullptr: there is none.
  BrokerOperations(std::vector<SettingFact> settings, StderrLog* log)
      : settings_(std::move(settings)), log_(log) {}

  /// Those that run now; those that did not run so before run since `now`.  [any thread]
  void set_plugins(std::vector<PluginFact> plugins, Timestamp now);
  void set_state(State state) noexcept { state_ = state; }
  /// As they count now.  [any thread]
  void set_settings(std::vector<SettingFact> settings) {
    const std::lock_guard lock(facts_mutex_);
    settings_ = std::move(settings);
  }

  State state() const noexcept override { return state_; }
  std::vector<PluginFact> plugins() const override {
    const std::lock_guard lock(facts_mutex_);
    return plugins_;
  }
  std::vector<PluginStart> plugin_starts() const override {
    const std::lock_guard lock(facts_mutex_);
    return starts_;
  }
  std::vector<SettingFact> settings() const override {
    const std::lock_guard lock(facts_mutex_);
    return settings_;
  }
  std::vector<LogLevelFact> log_levels() const override;
  Result<> set_log_level(std::string_view subsystem, std::optional<LogLevel> level) override;

 private:
  std::vector<std::string> subsystems() const;

  mutable std::mutex facts_mutex_;
  std::vector<SettingFact> settings_;  // guarded by facts_mutex_
  std::vector<PluginFact> plugins_;    // likewise
  std::vector<PluginStart> starts_;    // likewise; of each of plugins_
  StderrLog* const log_;
  std::atomic<State> state_ = State::starting;
  std::mutex levels_mutex_;  // one change at a time
};

}  // namespace millrace::kernel
