// One record to many: each element of a JSON array becomes the value of a record.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/fields/field.h>
#include <millrace/fields/json_text.h>
#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

// The elements of an array, as JSON.
class Elements final : public JsonEvents {
 public:
  bool is_array() const noexcept { return array_; }
  std::vector<std::string> take() { return std::move(elements_); }

  void begin_object() override {
    text_.begin_object();
    ++depth_;
  }
  void end_object() override {
    text_.end_object();
    --depth_;
    end();
  }
  void begin_array() override {
    if (depth_++ == 0) {
      array_ = true;
    } else {
      text_.begin_array();
    }
  }
  void end_array() override {
    if (--depth_ == 0) return;
    text_.end_array();
    end();
  }
  void key(std::string_view name) override { text_.key(name); }
  void string(std::string_view text) override {
    text_.string(text);
    end();
  }
  void literal(std::string_view text) override {
    text_.literal(text);
    end();
  }

 private:
  void end() {
    if (array_ && depth_ == 1) elements_.push_back(text_.take());
  }

  JsonText text_;
  std::vector<std::string> elements_;
  std::size_t depth_ = 0;
  bool array_ = false;
};

class Flatten final : public Operator {
 public:
  Flatten(Field field, std::optional<Field> key) : field_(std::move(field)), key_(std::move(key)) {}

  Result<> process(const RecordView& input, Emitter& out) override {
    // What ends a key ends it for what was made of it, too.
    if (!input.value) {
      out.emit({input.key, input.value, input.timestamp, input.headers, {}});
      return {};
    }
    MR_TRY(const auto found, field_.read(input, scratch_));
    if (!found) return Error{Errc::invalid_argument, "there is no " + field_.name()};
    Elements elements;
    MR_CHECK(walk_json(as_bytes(*found), elements));
    if (!elements.is_array()) {
      return Error{Errc::invalid_argument, field_.name() + " is no JSON array"};
    }
    for (const auto& element : elements.take()) MR_CHECK(emit(input, as_bytes(element), out));
    return {};
  }

 private:
  Result<> emit(const RecordView& input, Bytes element, Emitter& out) {
    auto key = input.key;
    if (key_) {
      RecordView made;
      made.value = element;
      MR_TRY(const auto found, key_->read(made, key_scratch_));
      key = found ? std::optional(as_bytes(*found)) : std::nullopt;
    }
    out.emit({key, element, input.timestamp, input.headers, {}});
    return {};
  }

  Field field_;
  std::optional<Field> key_;
  std::string scratch_;
  std::string key_scratch_;
};

class FlattenFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    auto field = Field::parse(setup.options.text("field"));
    if (!field) return Error{Errc::invalid_argument, "field: " + field.error().detail};
    std::optional<Field> key;
    if (setup.options.has("key")) {
      auto parsed = Field::parse(setup.options.text("key"));
      if (!parsed) return Error{Errc::invalid_argument, "key: " + parsed.error().detail};
      if (parsed->part() != Field::Part::value && parsed->part() != Field::Part::json) {
        return Error{Errc::invalid_argument,
                     "key: expected value or value.PATH of the element, found " + parsed->name()};
      }
      key = *std::move(parsed);
    }
    return std::make_unique<Flatten>(*std::move(field), std::move(key));
  }
};

class FlattenPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<FlattenFactory>());
  }
};

constexpr MillraceOption options[] = {
    {"field", MILLRACE_OPTION_TEXT, nullptr, "value", unbounded_min, unbounded_max, nullptr,
     "Where the JSON array is: value, header.NAME, or value.PATH of a JSON value.", 0},
    {"key", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max, nullptr,
     "The part of each element, as value.PATH, that becomes its key; not set: the record's key.",
     0},
    {}};

}  // namespace

MILLRACE_PLUGIN(FlattenPlugin, .kind = "operators", .id = "org.millrace.operators.flatten",
                .version = MILLRACE_VERSION,
                .summary = "one record for each element of a JSON array", .options = options);
