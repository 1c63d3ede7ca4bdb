#include "rules.h"

#include <string_view>

using namespace millrace;

namespace {

// The rule of the part that `name` names, made where there is none yet.
Result<Rule*> place(Rules& rules, std::string_view option, std::string_view name, bool keeps) {
  const auto field = Field::parse(name);
  if (!field || (field->part() != Field::Part::json && field->part() != Field::Part::header)) {
    return Error{Errc::invalid_argument, std::string(option) +
                                             ": expected header.NAME or value.PATH, found \"" +
                                             std::string(name) + "\""};
  }
  if (field->part() == Field::Part::header) {
    if (keeps) rules.headers.keeps_below = true;
    return &rules.headers.below[field->header()];
  }
  auto* rule = &rules.value;
  for (const auto& step : field->path()) {
    if (keeps) rule->keeps_below = true;
    rule = &rule->below[step];
  }
  return rule;
}

Result<> add_renames(Rules& rules, const Options& options) {
  for (const auto& text : options.texts("rename")) {
    const auto equals = text.rfind('=');
    if (equals == std::string::npos || equals + 1 == text.size()) {
      return Error{
          Errc::invalid_argument,
          "rename: expected PART=NAME such as \"value.user.mail=email\", found \"" + text + "\""};
    }
    MR_TRY(auto* rule, place(rules, "rename", std::string_view(text).substr(0, equals), false));
    if (rule->rename) {
      return Error{Errc::invalid_argument, "rename: " + text.substr(0, equals) + " gets two names"};
    }
    rule->rename = text.substr(equals + 1);
  }
  return {};
}

}  // namespace

Result<Rules> rules_of(const Options& options) {
  Rules rules;
  rules.redacted = options.text("redacted");
  for (const auto& name : options.texts("keep")) {
    MR_TRY(auto* rule, place(rules, "keep", name, true));
    rule->keep = true;
  }
  for (const auto& name : options.texts("drop")) {
    MR_TRY(auto* rule, place(rules, "drop", name, false));
    if (rule->keep) {
      return Error{Errc::invalid_argument, "drop: " + name + " is to be kept as well"};
    }
    rule->drop = true;
  }
  for (const auto& name : options.texts("redact")) {
    MR_TRY(auto* rule, place(rules, "redact", name, false));
    rule->redact = true;
  }
  MR_CHECK(add_renames(rules, options));
  if (!rules.touch_value() && !rules.touch_headers()) {
    return Error{Errc::invalid_argument, "none of keep, drop, rename and redact is set"};
  }
  return rules;
}
