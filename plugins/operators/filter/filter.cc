// Records whose part named `field` is as said go on.
#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include <re2/re2.h>

#include <millrace/fields/field.h>
#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

// What one expression may take, compiled.
constexpr std::int64_t pattern_bytes_max = 1 << 20;

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A comparison with what the options name. None: there is no such part.
class Test {
 public:
  virtual ~Test() = default;
  virtual bool holds(std::optional<std::string_view> found) const = 0;
};

template <class F>
class TestBy final : public Test {
 public:
  explicit TestBy(F holds) : holds_(std::move(holds)) {}
  bool holds(std::optional<std::string_view> found) const override { return holds_(found); }

 private:
  F holds_;
};
template <class F>
std::unique_ptr<Test> test_by(F holds) {
  return std::make_unique<TestBy<F>>(std::move(holds));
}
// Of what is there; what is not there fails it.
template <class F>
std::unique_ptr<Test> text_test(F holds) {
  return test_by([holds = std::move(holds)](std::optional<std::string_view> found) {
    return found && holds(*found);
  });
}

Result<std::unique_ptr<Test>> pattern_test(const std::string& to) {
  RE2::Options settings(RE2::Quiet);
  settings.set_max_mem(pattern_bytes_max);
  const auto pattern = std::make_shared<const RE2>(to, settings);
  if (!pattern->ok()) {
    return Error{Errc::invalid_argument,
                 "to: expected a regular expression, found \"" + to + "\": " + pattern->error()};
  }
  return text_test([pattern](std::string_view text) {
    return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern);
  });
}

Result<std::unique_ptr<Test>> number_test(std::string_view is, const std::string& to) {
  const auto bound = number_of(to);
  if (!bound) {
    return Error{Errc::invalid_argument, "to: expected a number, found \"" + to + "\""};
  }
  const auto test = [bound = *bound](auto compare) {
    return text_test([bound, compare](std::string_view text) {
      const auto number = number_of(text);
      return number && compare(*number, bound);
    });
  };
  if (is == "above") return test(std::greater());
  if (is == "at-least") return test(std::greater_equal());
  if (is == "below") return test(std::less());
  return test(std::less_equal());
}

Result<std::unique_ptr<Test>> make_test(std::string_view is, const Options& options) {
  using Found = std::optional<std::string_view>;
  if (is == "present" || is == "absent") {
    if (options.has("to")) {
      return Error{Errc::invalid_argument, "to: " + std::string(is) + " is compared with nothing"};
    }
    const bool present = is == "present";
    return test_by([present](Found found) { return found.has_value() == present; });
  }
  if (!options.has("to")) {
    return Error{Errc::invalid_argument, "to: missing; what is compared with?"};
  }
  const auto& to = options.text("to");
  if (is == "equal") return text_test([to](std::string_view text) { return text == to; });
  if (is == "different") return test_by([to](Found found) { return found != Found(to); });
  if (is == "containing") {
    return text_test([to](std::string_view text) { return text.find(to) != text.npos; });
  }
  if (is == "matching") return pattern_test(to);
  return number_test(is, to);
}

class Filter final : public Operator {
 public:
  Filter(Field field, std::shared_ptr<const Test> test, bool drop)
      : field_(std::move(field)), test_(std::move(test)), drop_(drop) {}

  Result<> process(const RecordView& input, Emitter& out) override {
    MR_TRY(const auto found, field_.read(input, scratch_));
    if (test_->holds(found) == drop_) return {};
    out.emit({input.key, input.value, input.timestamp, input.headers, {}});
    return {};
  }

 private:
  Field field_;
  std::shared_ptr<const Test> test_;
  bool drop_;
  std::string scratch_;
};

class FilterFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    auto field = Field::parse(setup.options.text("field"));
    if (!field) return Error{Errc::invalid_argument, "field: " + field.error().detail};
    MR_TRY(auto test, make_test(setup.options.text("is"), setup.options));
    return std::make_unique<Filter>(*std::move(field), std::move(test),
                                    setup.options.boolean("drop"));
  }
};

class FilterPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<FilterFactory>());
  }
};

constexpr MillraceOption options[] = {
    {"field", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max, nullptr,
     "The part of the record: key, value, header.NAME, or value.PATH of a JSON value.",
     MILLRACE_OPTION_REQUIRED},
    {"is", MILLRACE_OPTION_TEXT, nullptr, "present", unbounded_min, unbounded_max,
     "present|absent|equal|different|containing|matching|above|at-least|below|at-most",
     "What the part is; matching: RE2 finds the expression `to` in it.", 0},
    {"to", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max, nullptr,
     "What it is compared with: a text, an expression, or a number.", 0},
    {"drop", MILLRACE_OPTION_BOOLEAN, nullptr, "false", unbounded_min, unbounded_max, nullptr,
     "Whether records that are so are dropped, and the others go on.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(FilterPlugin, .kind = "operators", .id = "org.millrace.operators.filter",
                .version = MILLRACE_VERSION, .summary = "records by key, header or JSON field",
                .options = options);
