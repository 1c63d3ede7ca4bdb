// Records go on at a bounded pace; what comes faster waits in the source's log. Nothing is dropped,
// nothing is kept: the operator says how long each record takes, and the runtime waits.
#include <memory>

#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

std::size_t bytes_of(const RecordView& record) {
  std::size_t bytes = record.key ? record.key->size() : 0;
  if (record.value) bytes += record.value->size();
  for (const auto& header : record.headers) {
    bytes += header.key.size() + (header.value ? header.value->size() : 0);
  }
  return bytes;
}

class Throttle final : public Operator {
 public:
  Throttle(Duration per_record, double nanoseconds_per_byte)
      : per_record_(per_record), nanoseconds_per_byte_(nanoseconds_per_byte) {}

  Result<> process(const RecordView& input, Emitter& out) override {
    out.emit({input.key, input.value, input.timestamp, input.headers, {}});
    const Duration for_bytes(
        static_cast<std::int64_t>(nanoseconds_per_byte_ * static_cast<double>(bytes_of(input))));
    out.pause(std::max(per_record_, for_bytes));
    return {};
  }

 private:
  Duration per_record_;
  double nanoseconds_per_byte_;
};

class ThrottleFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    constexpr double second = 1e9;
    const auto& options = setup.options;
    if (!options.has("records_per_second") && !options.has("bytes_per_second")) {
      return Error{Errc::invalid_argument,
                   "neither records_per_second nor bytes_per_second is set"};
    }
    Duration per_record{};
    double per_byte = 0;
    if (options.has("records_per_second")) {
      const auto rate = options.number("records_per_second");
      if (!(rate >= rate_min)) {
        return Error{Errc::invalid_argument,
                     "records_per_second: expected 0.001 or more, found " + std::to_string(rate)};
      }
      per_record = Duration(static_cast<std::int64_t>(second / rate));
    }
    if (options.has("bytes_per_second")) {
      per_byte = second / static_cast<double>(options.integer("bytes_per_second"));
    }
    return std::make_unique<Throttle>(per_record, per_byte);
  }

 private:
  // One in a quarter of an hour: slower is stopped.
  static constexpr double rate_min = 0.001;
};

class ThrottlePlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<ThrottleFactory>());
  }
};

constexpr std::int64_t rate_max = 1'000'000'000'000;

constexpr MillraceOption options[] = {
    {"records_per_second", MILLRACE_OPTION_NUMBER, nullptr, nullptr, 0, rate_max, nullptr,
     "The most records of one partition in a second; below 1 for fewer.", 0},
    {"bytes_per_second", MILLRACE_OPTION_INTEGER, "bytes", nullptr, 1, rate_max, nullptr,
     "The most bytes of keys, values and headers of one partition in a second.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(ThrottlePlugin, .kind = "operators", .id = "org.millrace.operators.throttle",
                .version = MILLRACE_VERSION, .summary = "records at a bounded pace",
                .options = options);
