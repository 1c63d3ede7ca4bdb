// The first record of each text that a part of it has; the same text within a time is dropped. What
// was seen is known per partition.
#include <memory>
#include <string>

#include <millrace/fields/field.h>
#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

class Dedup final : public Operator {
 public:
  Dedup(Field field, std::int64_t within_ms) : field_(std::move(field)), within_ms_(within_ms) {}

  // What has been seen is a key of the state, and a timer of the same name ends it.
  Result<> process(const RecordView& input, Emitter& out) override {
    MR_TRY(const auto found, field_.read(input, scratch_));
    if (found) {
      const auto id = as_bytes(*found);
      if (out.state().get(id)) return {};
      out.state().put(id, {});
      out.set_timer(id, {out.stream_time().ms + within_ms_});
    }
    out.emit({input.key, input.value, input.timestamp, input.headers, {}});
    return {};
  }

  Result<> timer(Bytes name, Emitter& out) override {
    out.state().erase(name);
    return {};
  }

 private:
  Field field_;
  std::int64_t within_ms_;
  std::string scratch_;
};

class DedupFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    auto field = Field::parse(setup.options.text("field"));
    if (!field) return Error{Errc::invalid_argument, "field: " + field.error().detail};
    return std::make_unique<Dedup>(*std::move(field), setup.options.integer("within_ms"));
  }
};

class DedupPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<DedupFactory>());
  }
};

constexpr std::int64_t within_ms_max = 366LL * 24 * 60 * 60 * 1000;

constexpr MillraceOption options[] = {
    {"field", MILLRACE_OPTION_TEXT, nullptr, "key", unbounded_min, unbounded_max, nullptr,
     "What two records have in common: key, value, header.NAME, or value.PATH of a JSON value.", 0},
    {"within_ms", MILLRACE_OPTION_INTEGER, "ms", "3600000", 1, within_ms_max, nullptr,
     "How long, by the records' timestamps, a text is remembered since it was first seen. Each "
     "partition remembers for itself: what is the same has to have the same key.",
     0},
    {}};

}  // namespace

MILLRACE_PLUGIN(DedupPlugin, .kind = "operators", .id = "org.millrace.operators.dedup",
                .version = MILLRACE_VERSION,
                .summary = "drops what the same partition had before, within a time",
                .options = options);
