// Acknowledges before the write: what shall be on all replicas is so as soon as the leader has it.
#include "broken_transport.h"

namespace millrace::broken {
namespace {

class EarlyBroker final : public PassingBroker {
 public:
  using PassingBroker::PassingBroker;
  Call<ProduceAnswer> produce(Session& session, ProduceRequest request) override {
    if (request.acks == -1) request.acks = 1;
    return PassingBroker::produce(session, std::move(request));
  }
};

using Early = BrokenTransportPlugin<EarlyBroker>;

}  // namespace
}  // namespace millrace::broken

MILLRACE_SYSTEM_PLUGIN(millrace::broken::Early, .kind = "transport",
                       .id = "org.example.transport.early", .version = "0.1.0",
                       .options = millrace::kafka_transport::declared_options);
