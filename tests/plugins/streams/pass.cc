// Passes every record on as it is: what the runtime itself costs.
#include <memory>

#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

class Pass final : public Operator {
 public:
  Result<> process(const RecordView& input, Emitter& out) override {
    out.emit({input.key, input.value, input.timestamp, input.headers, {}});
    return {};
  }
};

class PassFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& /*setup*/) override {
    return std::make_unique<Pass>();
  }
};

class PassPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<PassFactory>());
  }
};

}  // namespace

MILLRACE_PLUGIN(PassPlugin, .kind = "operators", .id = "org.example.operators.pass",
                .version = "0.1.0", .summary = "passes records on");
