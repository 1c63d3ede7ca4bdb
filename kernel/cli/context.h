// What every verb gets: where the broker is, how to print, and an environment to run in.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <millrace/codec.h>
#include <millrace/environment.h>

#include "kernel/cli/output.h"
#include "kernel/host/trial.h"

namespace CLI {
class App;
}

namespace millrace::kernel::cli {

struct Context {
  std::string bootstrap = "127.0.0.1:9092";
  OutputFormat output = OutputFormat::table;
  std::vector<std::string> plugin_folders;
  PluginTrial trial = {};  ///< before the tool itself loads a plugin that it only looks at
};

/// What the chosen verb does after the arguments are parsed. An Error is printed and ends the tool
/// with an exit code that says its kind.
using Action = std::function<Result<>()>;

/// Each adds its verb to `app`; choosing it sets `action`. `context` is filled when it runs.
void add_topic_verb(CLI::App& app, Context& context, Action& action);
void add_group_verb(CLI::App& app, Context& context, Action& action);
void add_produce_verb(CLI::App& app, Context& context, Action& action);
void add_consume_verb(CLI::App& app, Context& context, Action& action);
void add_bench_verb(CLI::App& app, Context& context, Action& action);
void add_config_verb(CLI::App& app, Context& context, Action& action);
void add_cluster_verb(CLI::App& app, Context& context, Action& action);
void add_doctor_verb(CLI::App& app, Context& context, Action& action);
void add_log_verb(CLI::App& app, Context& context, Action& action);
void add_plugin_verb(CLI::App& app, Context& context, Action& action);
void add_stream_verb(CLI::App& app, Context& context, Action& action);
void add_aggregate_verb(CLI::App& app, Context& context, Action& action);

/// Runs `body` in an environment of one shard, and waits for it. Ctrl-C and SIGTERM end the process
/// at once, between two lines of what it prints; stderr has what `last_words` says then, which is
/// asked in another thread.
Result<> run(const std::function<Task<>(Environment&)>& body,
             const std::function<std::string()>& last_words = {});

/// The compression plugins that are found, started.
class LoadedCodecs {
 public:
  static Result<LoadedCodecs> load(const Context& context, Environment& environment);
  ~LoadedCodecs();
  LoadedCodecs(LoadedCodecs&&) noexcept;
  LoadedCodecs& operator=(LoadedCodecs&&) noexcept;

  Codecs codecs() const noexcept;

 private:
  struct Parts;
  explicit LoadedCodecs(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace millrace::kernel::cli
