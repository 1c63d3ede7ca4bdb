// A step that passes records on, until one has the value that makes it misbehave.
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

class Misbehaves final : public Operator {
 public:
  explicit Misbehaves(const Options& options)
      : how_(options.text("how")), when_(options.text("when")) {}

  Result<> process(const RecordView& input, Emitter& out) override {
    // What failed must leave no trace: neither this output nor this state.
    out.state().put(as_bytes("seen"), input.value.value_or(Bytes()));
    out.emit({input.key, input.value, input.timestamp, input.headers, {}});
    if (!input.value || as_text(*input.value) != when_) return {};
    return misbehave(out);
  }

 private:
  Result<> misbehave(Emitter& out) {
    if (how_ == "fail") return Error{Errc::invalid_argument, "this record is not to my liking"};
    if (how_ == "throw") throw std::runtime_error("thrown on purpose");
    if (how_ == "throw-other") throw 42;
    if (how_ == "dawdle") {
      std::promise<void> never;
      never.get_future().wait_for(std::chrono::milliseconds(300));
    }
    if (how_ == "hang") {
      std::promise<void> never;
      never.get_future().wait();
    }
    if (how_ == "hoard") {
      const std::string value(1 << 20, 'x');
      for (int i = 0;; ++i) out.state().put(as_bytes(std::to_string(i)), as_bytes(value));
    }
    if (how_ == "flood") {
      const std::string value(1 << 20, 'x');
      while (true) out.emit({{}, as_bytes(value), {}, {}, {}});
    }
    if (how_ == "swallow") {  // the budget's exception is caught, and all is said to be well
      const std::string value(1 << 20, 'x');
      try {
        for (int i = 0;; ++i) out.state().put(as_bytes(std::to_string(i)), as_bytes(value));
      } catch (...) {
        return {};
      }
    }
    if (how_ == "garbage")
      out.emit({Bytes(static_cast<const std::byte*>(nullptr), 1000), {}, {}, {}, {}});
    if (how_ == "nowhere") out.emit({{}, as_bytes("lost"), {}, {}, "no such topic!"});
    return {};
  }

  std::string how_;
  std::string when_;
};

class MisbehavesFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    const auto& how = setup.options.text("how");
    if (how == "refuse") return Error{Errc::invalid_argument, "these options go not together"};
    if (how == "make-null") return std::unique_ptr<Operator>();
    if (how == "make-throws") throw std::runtime_error("make() throws");
    return std::make_unique<Misbehaves>(setup.options);
  }
};

class MisbehavesPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<MisbehavesFactory>());
  }
};

constexpr MillraceOption options[] = {
    {"how", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max,
     "fail|throw|throw-other|dawdle|hang|hoard|flood|swallow|garbage|nowhere|refuse|make-null|"
     "make-throws",
     "What it does.", MILLRACE_OPTION_REQUIRED},
    {"when", MILLRACE_OPTION_TEXT, nullptr, "poison", unbounded_min, unbounded_max, nullptr,
     "The value that makes it do so.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(MisbehavesPlugin, .kind = "operators", .id = "org.example.operators.misbehaves",
                .version = "0.1.0", .summary = "fails in many ways", .options = options);
