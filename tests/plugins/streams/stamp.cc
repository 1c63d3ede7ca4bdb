// Emits VERSION:COUNT:VALUE, where COUNT is how many records its state has seen of the key: built
// twice with another VERSION, so that one may take the other's place.
#include <charconv>
#include <memory>
#include <string>

#include <millrace/operator.h>
#include <millrace/plugin.h>

#ifndef STAMP_VERSION
#error "STAMP_VERSION is set by the build"
#endif

namespace {

using namespace millrace;

class Stamp final : public Operator {
 public:
  Result<> process(const RecordView& input, Emitter& out) override {
    const auto key = input.key.value_or(Bytes());
    std::int64_t seen = 0;
    if (const auto before = out.state().get(key)) {
      const auto text = as_text(*before);
      std::from_chars(text.data(), text.data() + text.size(), seen);
    }
    const auto count = std::to_string(seen + 1);
    out.state().put(key, as_bytes(count));
    auto value = std::string(STAMP_VERSION) + ":" + count + ":";
    value += as_text(input.value.value_or(Bytes()));
    out.emit({input.key, as_bytes(value), input.timestamp, input.headers, {}});
    return {};
  }
};

class StampFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& /*setup*/) override {
    return std::make_unique<Stamp>();
  }
};

class StampPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<StampFactory>());
  }
};

}  // namespace

MILLRACE_PLUGIN(StampPlugin, .kind = "operators", .id = "org.example.operators.stamp",
                .version = STAMP_VERSION, .summary = "says who has seen a record");
