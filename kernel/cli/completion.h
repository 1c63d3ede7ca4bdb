// What may be typed next, from a program's tree of arguments: asked by the scripts in
// packaging/completions.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace millrace::kernel::cli {

/// What an argument's values are, where they are not written down beside it.
enum class ValueKind {
  none,
  files,
  folders,
  topics,
  groups,
  brokers,
  streams,
  stream_steps,
  aggregates,
  plugins,
  config_keys,     ///< as `config explain` takes them
  topic_settings,  ///< NAME=VALUE
  settings,        ///< NAME, of what the command names: a topic, a group, a broker
  setting_values,  ///< the same as NAME=VALUE
  daemon_settings  ///< KEY=VALUE of millraced --set
};

/// One word, and what it means.
struct Candidate {
  std::string value;
  std::string help;

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// What stands before the cursor: values of options by long name, the positionals of the verb.
struct TypedWords {
  std::map<std::string, std::vector<std::string>, std::less<>> options;
  std::vector<std::string> positionals;

  /// The last value of an option; empty when it is not there.
  std::string_view option(std::string_view name) const;
};

/// Tells values of a kind, whether or not they begin with `prefix`, which it may use to ask less.
using ValueSource = std::function<std::vector<Candidate>(ValueKind kind, const TypedWords& typed,
                                                         std::string_view prefix)>;

struct Completions {
  std::vector<Candidate> candidates;  ///< whole words, all of which begin as the one at the cursor
  ValueKind names = ValueKind::none;  ///< `files` or `folders`: the shell adds those that it finds
};

/// `words` follow the program's name; the last is that at the cursor, up to it, and may be empty.
Completions complete(const CLI::App& program, std::span<const std::string> words,
                     const ValueSource& source);

/// An argument that has a rule of its own, by verb ("topic describe", or "group" for all below it)
/// and name ("--acks", "NAME"). A test holds them against the tree.
struct ArgumentRule {
  std::string_view verb;  ///< "": of the program itself
  std::string_view argument;
  ValueKind kind = ValueKind::none;
  std::string_view values = {};  ///< with blanks between them
};
std::span<const ArgumentRule> argument_rules() noexcept;

}  // namespace millrace::kernel::cli
