// One partition's folder on a simulated disk, opened by the shipped storage plugin.
#pragma once

#include <optional>
#include <string>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>
#include <millrace/testing/storage_subject.h>

#include "fuzz.h"

namespace millrace::fuzz {

class LogFolder {
 public:
  static constexpr const char* path = "/data/orders-0/";

  LogFolder() {
    need(files().make_folders("/data/orders-0"), "a folder");
    auto loaded = testing::load_plugin(MILLRACE_PLUGIN_DIR "/storage/filelog.so", node_, {},
                                       {{"broker.data", "/data"}});
    plugin_.emplace(need(std::move(loaded), "the plugin"));
    need(run([this] { return storage().lock(); }), "the folder is ours");
  }
  /// As by a process that ends without a word; every log is closed by whoever opened it.
  ~LogFolder() { log_.reset(); }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

  /// Runs what `make` begins, to its end.
  template <class F>
  auto run(F make) -> decltype(make().await_resume()) {
    return world_.run(*node_.shards().front(), std::move(make));
  }

  testing::SimDisk& files() { return node_.files(); }
  void put(const std::string& name, Bytes content) {
    need(replace_file(files(), path + name, content), "a file");
  }

  /// Opens the log, whatever the folder holds; false when it is refused.
  bool open() {
    auto opened = run([this] { return storage().open(testing::orders, {}); });
    if (!opened) return false;
    log_ = std::move(opened->log);
    return true;
  }
  PartitionLog& log() { return *log_; }
  void close() {
    static_cast<void>(run([this] { return log_->close(); }));
    log_.reset();
  }

  /// Everything from `from` on.
  Result<Buffer> read(Offset from) {
    MR_TRY(const auto payload, run([&] { return log_->read(testing::everything_from(from)); }));
    return payload.flatten();
  }

 private:
  Storage& storage() { return *plugin_->registered().storage; }

  testing::SimWorld world_{1};
  testing::SimEnvironment& node_ = world_.add_node("b1");
  std::optional<testing::LoadedPlugin> plugin_;
  std::unique_ptr<PartitionLog> log_;
};

}  // namespace millrace::fuzz
