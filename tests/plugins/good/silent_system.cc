// A storage or a coordination that holds nothing: SILENT_STORAGE chooses. It tells the log when it
// comes and goes.
#include <millrace/system_plugin.h>

namespace {

using namespace millrace;

Error nothing_here() { return {Errc::unsupported, "this plugin holds nothing"}; }

#if SILENT_STORAGE
class Silent final : public Storage {
 public:
  explicit Silent(const Log& log) : log_(log) {}
  ~Silent() override { log_.info("storage destroyed"); }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;

  Task<> lock() override { co_return nothing_here(); }
  Task<DirectoryOwner> owner() override { co_return nothing_here(); }
  Task<> set_owner(DirectoryOwner) override { co_return nothing_here(); }
  Task<std::vector<FoundPartition>> list() override { co_return nothing_here(); }
  Task<Opened> open(TopicPartition, LogOptions) override { co_return nothing_here(); }
  Task<> remove(TopicPartition) override { co_return nothing_here(); }
  Task<> checkpoint(CheckpointKind, std::vector<PartitionOffset>) override {
    co_return nothing_here();
  }
  Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind) override {
    co_return nothing_here();
  }
  Task<> close() override { co_return nothing_here(); }

 private:
  const Log& log_;
};
#else
class Silent final : public Coordination {
 public:
  explicit Silent(const Log& log) : log_(log) {}
  ~Silent() override { log_.info("coordination destroyed"); }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;

  Task<std::unique_ptr<Lease>> join(Member) override { co_return nothing_here(); }
  Task<Versioned> get(std::string) override { co_return nothing_here(); }
  Task<std::vector<std::string>> list(std::string) override { co_return nothing_here(); }
  Task<std::vector<Version>> commit(std::vector<Write>) override { co_return nothing_here(); }
  Task<Seen> next_change(std::string, Seen) override { co_return nothing_here(); }

 private:
  const Log& log_;
};
#endif

class SilentPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& host) override {
    host.log().info("started");
    return registrar.add(std::make_unique<Silent>(host.log()));
  }
};

}  // namespace

#if SILENT_STORAGE
MILLRACE_SYSTEM_PLUGIN(SilentPlugin, .kind = "storage", .id = "org.example.storage.silent",
                       .version = "0.1.0");
#else
MILLRACE_SYSTEM_PLUGIN(SilentPlugin, .kind = "coordination",
                       .id = "org.example.coordination.silent", .version = "0.1.0");
#endif
