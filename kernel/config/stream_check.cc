#include "kernel/config/stream_check.h"

#include <algorithm>
#include <set>

#include "kernel/config/changelog_name.h"
#include "kernel/config/kernel_options.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

// "__stream_NAME_changelog" is a topic's name.
constexpr std::size_t stream_name_max = 200;
constexpr std::size_t step_name_max = 100;
constexpr std::size_t topic_name_max = 249;
constexpr std::size_t steps_max = 100;
constexpr std::string_view guarantees[] = {"at-least-once", "exactly-once"};
constexpr std::string_view policies[] = {"stop", "skip", "dead-letter"};
constexpr std::string_view beginnings[] = {"earliest", "latest"};

bool is_name(std::string_view name, std::size_t size_max) {
  return !name.empty() && name.size() <= size_max && name != "." && name != ".." &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

// In which the broker keeps what is not for users.
bool is_of_broker(std::string_view topic) {
  constexpr std::string_view topics[] = {"__consumer_offsets", "__transaction_state",
                                         "__share_group_state"};
  return contains(topics, topic);
}

// Why it cannot be the topic of a stream.
std::optional<std::string> check_topic(const std::string& name) {
  if (is_changelog(name)) {
    return concat("\"", name, "\" keeps the state of a stream; use another topic");
  }
  if (is_name(name, topic_name_max)) return std::nullopt;
  return concat("\"", name,
                "\" is no name of a topic: letters, digits, \".\", \"_\" and \"-\", at most ",
                topic_name_max);
}

class Check {
 public:
  explicit Check(StreamSpec& spec) : spec_(spec) {}

  std::vector<StreamFault> run() {
    if (!is_name(spec_.name, stream_name_max)) {
      fault("name", concat("\"", spec_.name,
                           "\" is no name of a stream: letters, digits, \".\", "
                           "\"_\" and \"-\", at most ",
                           stream_name_max));
    }
    sources();
    if (!spec_.sink.empty()) {
      if (auto wrong = check_output(spec_, spec_.sink)) fault("sink", *std::move(wrong));
    }
    one_of("guarantee", spec_.guarantee, guarantees);
    if (spec_.guarantee == "exactly-once") {
      fault("guarantee",
            "exactly-once comes with transactions, which this version has not: use "
            "at-least-once, whose keyed state is exact and whose outputs may repeat");
    }
    one_of("from", spec_.from, beginnings);
    one_of("on-error", spec_.on_error, policies);
    dead_letter();
    within("memory", "bytes", spec_.memory_bytes, stream_memory_bytes_min, stream_memory_bytes_max);
    within("timeout", "ms", spec_.timeout_ms, 1, stream_timeout_ms_max);
    steps();
    return std::move(faults_);
  }

 private:
  void fault(std::string key, std::string message, std::optional<std::size_t> step_at = {}) {
    faults_.push_back({std::move(key), step_at, std::move(message)});
  }
  void topic(const char* key, const std::string& name) {
    if (auto wrong = check_topic(name)) fault(key, *std::move(wrong));
  }
  void within(const char* key, std::string_view unit, std::int64_t value, std::int64_t least,
              std::int64_t most) {
    if (value >= least && value <= most) return;
    fault(key, concat("expected ", least, " to ", most, " ", unit, ", found ", value));
  }
  template <std::size_t N>
  void one_of(const char* key, const std::string& value, const std::string_view (&known)[N]) {
    if (contains(known, value)) return;
    const std::vector<std::string> names(std::begin(known), std::end(known));
    fault(key, concat("expected one of \"", joined(names, "\", \""), "\", found \"", value, "\"",
                      nearest_hint(value, names)));
  }

  void sources() {
    if (spec_.sources.empty()) fault("sources", "expected a topic at least");
    for (auto source = spec_.sources.begin(); source != spec_.sources.end(); ++source) {
      topic("sources", *source);
      if (std::find(spec_.sources.begin(), source, *source) != source) {
        fault("sources", concat("\"", *source, "\" stands twice"));
      }
    }
  }

  void dead_letter() {
    const bool wanted = spec_.on_error == "dead-letter";
    if (!wanted && spec_.dead_letter.empty()) return;
    if (!wanted) return fault("dead-letter", "goes with on-error = \"dead-letter\"");
    if (spec_.dead_letter.empty()) {
      return fault("dead-letter", "on-error = \"dead-letter\" needs it: the topic for what failed");
    }
    topic("dead-letter", spec_.dead_letter);
    if (contains(spec_.sources, spec_.dead_letter)) {
      fault("dead-letter",
            concat("\"", spec_.dead_letter, "\" is a source as well: what failed would come back"));
    }
  }

  void steps() {
    if (spec_.steps.empty()) fault("steps", "expected a step at least");
    if (spec_.steps.size() > steps_max) fault("steps", concat("at most ", steps_max, " steps"));
    std::set<std::string> names;
    for (std::size_t at = 0; at < spec_.steps.size(); ++at) {
      auto& step = spec_.steps[at];
      if (!is_name(step.plugin, step_name_max)) {
        fault("operator",
              concat("expected the NAME of operators/NAME.so in a plugin folder, found \"",
                     step.plugin, "\""),
              at);
      }
      const bool named = !step.name.empty();
      if (!named) step.name = step.plugin;
      if (named && !is_name(step.name, step_name_max)) {
        fault("name", concat("\"", step.name, "\" is no name of a step"), at);
      } else if (!names.insert(step.name).second) {
        fault(named ? "name" : "operator",
              concat("a step before it is called ", step.name,
                     " as well: give it a name of its own, under which its state is kept"),
              at);
      }
    }
  }

  StreamSpec& spec_;
  std::vector<StreamFault> faults_;
};

}  // namespace

std::vector<StreamFault> check_stream(StreamSpec& spec) { return Check(spec).run(); }

std::optional<std::string> why_no_topic(const std::string& name) {
  if (auto wrong = check_topic(name)) return wrong;
  if (is_of_broker(name)) return concat("\"", name, "\" is the broker's own; use another topic");
  return std::nullopt;
}

std::optional<std::string> check_output(const StreamSpec& spec, const std::string& topic) {
  if (auto wrong = why_no_topic(topic)) return wrong;
  if (contains(spec.sources, topic)) {
    return concat("\"", topic, "\" is a source as well: the stream would feed itself");
  }
  return std::nullopt;
}

}  // namespace millrace::kernel
