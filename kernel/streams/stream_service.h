// All streams of this broker: what Broker::service<Streams>() answers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/streams.h>

#include "kernel/streams/stream_changes.h"
#include "kernel/streams/stream_parts.h"
#include "kernel/streams/stream_runner.h"
#include "kernel/streams/stream_store.h"

namespace millrace::kernel {

/// Its state is the first data shard's; calls of others go there.
class StreamService final : public Streams {
 public:
  /// `configured`: what the configuration declares. Over one of the same name in coordination it
  /// wins.
  StreamService(StreamParts parts, std::vector<PlannedStream> configured);
  ~StreamService() override;

  /// Makes one operator of each step of the configuration's streams: options that only the
  /// operators can judge are wrong before anything is started.  [control thread]
  Task<> try_configured();
  /// Other brokers are reached so. Before open().  [control thread]
  void connect(StreamLinks links) { *parts_.links = std::move(links); }
  /// Reads what is stored, and starts what is not stopped; follows what other brokers change of it
  /// from then on. The broker serves.  [control thread]
  Task<> open();
  /// Every stream commits what it has begun.  [control thread]
  Task<> close();
  /// The configuration has been read again and declares `wanted`: what differs is tried, and then
  /// started, changed, replaced or ended, as by a restart. An error: one of them is wrong, and
  /// nothing was changed.  [control thread]
  Task<std::vector<StreamChange>> reconfigure(std::vector<PlannedStream> wanted);
  /// What it would refuse, before anything else is changed.  [control thread]
  Task<> try_to_reconfigure(std::vector<PlannedStream> wanted);
  /// As replace(), which is this and then remember().
  Task<> replace_unremembered(std::string name, std::string step, std::string file);
  /// The operators that it has now are those of every start, of all brokers.
  Task<> remember(std::string name);

  Task<std::vector<StreamFact>> list() override;
  Task<StreamFact> describe(std::string name) override;
  Task<> create(StreamSpec spec) override;
  Task<> remove(std::string name) override;
  Task<> stop(std::string name) override;
  Task<> start(std::string name) override;
  Task<> replace(std::string name, std::string step, std::string file) override;
  Task<> remove_but_state(std::string name) override;
  Task<> start_behind_failed(std::string name) override;

 private:
  // [home]
  Task<> start_all(StoredStreams stored);
  Task<> start_stored(StreamSpec spec, bool stopped);
  Task<> close_all();
  /// As is stored by now.
  Task<> follow_stored();
  Task<> follow_stopped(const StoredStreams& stored);
  Task<std::vector<StreamFact>> list_here();
  Task<StreamFact> describe_here(std::string name);
  Task<> create_here(StreamSpec spec);
  Task<PlannedStream> plan(StreamSpec spec);
  Task<StreamRunner*> plan_again(StreamSpec spec);
  Task<> remove_here(std::string name, bool keep_state);
  Task<> stop_here(std::string name);
  Task<> start_here(std::string name, bool skip);
  Task<> replace_here(std::string name, std::string step, std::string file);
  Task<> remember_here(std::string name);
  Task<std::vector<StreamChange>> reconfigure_here(std::vector<PlannedStream> wanted);
  Task<> try_to_reconfigure_here(std::vector<PlannedStream> wanted);
  Task<> try_changes(const std::vector<StreamChange>& changes,
                     const std::vector<PlannedStream>& wanted);
  Task<> make_change(const StreamChange& change, const PlannedStream* planned,
                     const StoredStreams& stored);
  Task<> put_in_place(StreamRunner& runner, std::size_t step_at, PluginLibrary library);
  Result<StreamRunner*> find(const std::string& name);
  Result<StreamRunner*> find_own(const std::string& name, std::string_view what);
  template <class F>
  auto on_control(F make) {
    return run_on(parts_.environment.control(), std::move(make));
  }
  Task<> follow(std::string prefix);  // [control thread]
  Shard& home() noexcept { return *parts_.environment.shards().front(); }

  StreamParts parts_;
  std::vector<PlannedStream> configured_;  // as they run
  StreamStore store_;                      // [control thread]
  Log log_;
  Mutex changes_;  // one at a time
  bool open_ = false;
  Gate following_;  // [control thread], and below
  CancelScope scope_;
  std::map<std::string, std::unique_ptr<StreamRunner>, std::less<>> streams_;
};

}  // namespace millrace::kernel
