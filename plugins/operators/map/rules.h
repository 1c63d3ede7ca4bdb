// What is done with which part of a record.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <millrace/fields/field.h>
#include <millrace/options.h>
#include <millrace/result.h>

/// Of one name, or of what is below it.
struct Rule {
  bool keep = false;
  bool drop = false;
  bool redact = false;
  std::optional<std::string> rename;
  /// Members by name; of arrays, of all their elements.
  std::map<std::string, Rule, std::less<>> below;
  bool keeps_below = false;  ///< somewhere below something is kept, and so nothing else is
};

struct Rules {
  Rule value;    ///< of the JSON value
  Rule headers;  ///< by name in `below`
  std::string redacted;

  bool touch_value() const noexcept { return !value.below.empty(); }
  bool touch_headers() const noexcept { return !headers.below.empty(); }
};

/// Of the options keep, drop, rename, redact, redacted.
millrace::Result<Rules> rules_of(const millrace::Options& options);
