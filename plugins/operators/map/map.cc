// Fields of JSON values, and headers: kept, dropped, renamed, redacted.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/operator.h>
#include <millrace/plugin.h>

#include "json_rules.h"
#include "rules.h"

namespace {

using namespace millrace;

class Map final : public Operator {
 public:
  explicit Map(Rules rules) : rules_(std::move(rules)) {}

  Result<> process(const RecordView& input, Emitter& out) override {
    auto value = input.value;
    std::string changed;
    if (value && rules_.touch_value()) {
      MR_TRY(changed, apply_rules(rules_, *value));
      value = as_bytes(changed);
    }
    const auto headers = rules_.touch_headers() ? headers_of(input) : input.headers;
    out.emit({input.key, value, input.timestamp, headers, {}});
    return {};
  }

 private:
  std::vector<HeaderView> headers_of(const RecordView& input) const {
    std::vector<HeaderView> headers;
    for (auto header : input.headers) {
      const auto found = rules_.headers.below.find(header.key);
      const bool ruled = found != rules_.headers.below.end();
      if (rules_.headers.keeps_below && !(ruled && found->second.keep)) continue;
      if (ruled) {
        const auto& rule = found->second;
        if (rule.drop) continue;
        if (rule.redact && header.value) header.value = as_bytes(rules_.redacted);
        if (rule.rename) header.key = *rule.rename;
      }
      headers.push_back(header);
    }
    return headers;
  }

  Rules rules_;
};

class MapFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    MR_TRY(auto rules, rules_of(setup.options));
    return std::make_unique<Map>(std::move(rules));
  }
};

class MapPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<MapFactory>());
  }
};

constexpr MillraceOption options[] = {
    {"keep", MILLRACE_OPTION_TEXTS, nullptr, "", unbounded_min, unbounded_max, nullptr,
     "Parts, as value.PATH or header.NAME, beside which nothing of the value, or of the headers, "
     "stays.",
     0},
    {"drop", MILLRACE_OPTION_TEXTS, nullptr, "", unbounded_min, unbounded_max, nullptr,
     "Parts that go.", 0},
    {"rename", MILLRACE_OPTION_TEXTS, nullptr, "", unbounded_min, unbounded_max, nullptr,
     "Parts that get another name where they are, as PART=NAME.", 0},
    {"redact", MILLRACE_OPTION_TEXTS, nullptr, "", unbounded_min, unbounded_max, nullptr,
     "Parts whose content is replaced by the text `redacted`.", 0},
    {"redacted", MILLRACE_OPTION_TEXT, nullptr, "***", unbounded_min, unbounded_max, nullptr,
     "What stands where something was redacted.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(MapPlugin, .kind = "operators", .id = "org.millrace.operators.map",
                .version = MILLRACE_VERSION, .summary = "fields of JSON values and headers",
                .options = options);
