// A stream operator with everything that one can have: options, state by key, timers. It counts the
// records of each key, and sends each count on when its time is over.
#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

std::int64_t number_of(std::optional<Bytes> bytes) {
  std::int64_t number = 0;
  const auto text = bytes ? as_text(*bytes) : std::string_view();
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class Tally final : public Operator {
 public:
  explicit Tally(std::int64_t every_ms) : every_ms_(every_ms) {}

  // An error is one of this record: the stream's policy says whether it stops, or goes on.
  Result<> process(const RecordView& input, Emitter& out) override {
    if (!input.key) return Error{Errc::invalid_argument, "a record without a key"};
    const auto before = out.state().get(*input.key);
    if (!before) out.set_timer(*input.key, {out.stream_time().ms + every_ms_});
    const auto count = std::to_string(number_of(before) + 1);
    out.state().put(*input.key, as_bytes(count));
    return {};
  }

  // Time is that of the records: it goes on when they do.
  Result<> timer(Bytes name, Emitter& out) override {
    out.emit({name, out.state().get(name), {}, {}, {}});
    out.state().erase(name);
    return {};
  }

 private:
  std::int64_t every_ms_;
};

// Makes one for each partition of each step that names this plugin.
class TallyFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    return std::make_unique<Tally>(setup.options.integer("every_ms"));
  }
};

class TallyPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<TallyFactory>());
  }
};

// What may stand in a step of [stream.NAME] of millrace.toml. The kernel checks it and fills in
// defaults; what it cannot know, make() refuses.
constexpr MillraceOption options[] = {
    {"every_ms", MILLRACE_OPTION_INTEGER, "ms", "60000", 1, 86'400'000, nullptr,
     "How long records are counted before their number is sent on.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(TallyPlugin, .kind = "operators", .id = "org.example.operators.tally",
                .version = "0.1.0", .summary = "counts records by key", .options = options);
