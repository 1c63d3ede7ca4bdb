// A filter: records whose value contains a text go on, the others do not.
#include <memory>
#include <string>

#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

class Contains final : public Operator {
 public:
  explicit Contains(std::string text) : text_(std::move(text)) {}

  Result<> process(const RecordView& input, Emitter& out) override {
    if (!input.value || as_text(*input.value).find(text_) == std::string_view::npos) return {};
    out.emit({input.key, input.value, input.timestamp, input.headers, {}});
    return {};
  }

 private:
  std::string text_;
};

// Made once per step of a stream and partition, with that step's options.
class ContainsFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    const auto& text = setup.options.text("text");
    if (text.empty()) return Error{Errc::invalid_argument, "text: empty, every record has that"};
    return std::make_unique<Contains>(text);
  }
};

class ContainsPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<ContainsFactory>());
  }
};

constexpr MillraceOption options[] = {
    {"text", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max, nullptr,
     "What the value contains.", MILLRACE_OPTION_REQUIRED},
    {}};

}  // namespace

MILLRACE_PLUGIN(ContainsPlugin, .kind = "operators", .id = "org.example.operators.contains",
                .version = "0.1.0", .summary = "records that contain a text", .options = options);
