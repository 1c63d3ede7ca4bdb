// Drops the epoch check: a leader never learns with which epoch the log of a follower ends, so that
// a tail which it has not itself stays.
#include "broken_transport.h"

namespace millrace::broken {
namespace {

class EpochlessBroker final : public PassingBroker {
 public:
  using PassingBroker::PassingBroker;
  Call<FetchAnswer> fetch(Session& session, FetchRequest request) override {
    for (auto& topic : request.topics) {
      for (auto& partition : topic.partitions) {
        partition.last_fetched_epoch = {};
        partition.current_leader_epoch = {};
      }
    }
    return PassingBroker::fetch(session, std::move(request));
  }
};

using Epochless = BrokenTransportPlugin<EpochlessBroker>;

}  // namespace
}  // namespace millrace::broken

MILLRACE_SYSTEM_PLUGIN(millrace::broken::Epochless, .kind = "transport",
                       .id = "org.example.transport.epochless", .version = "0.1.0",
                       .options = millrace::kafka_transport::declared_options);
