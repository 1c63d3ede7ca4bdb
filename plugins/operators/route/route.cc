// Records to topics, by the text of one of their parts.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/fields/field.h>
#include <millrace/operator.h>
#include <millrace/plugin.h>

namespace {

using namespace millrace;

struct Routes {
  std::map<std::string, std::string, std::less<>> topics;  // by text
  std::string otherwise;                                   // empty: the next step
  bool drop_others = false;
};

class Route final : public Operator {
 public:
  Route(Field field, Routes routes) : field_(std::move(field)), routes_(std::move(routes)) {}

  Result<> process(const RecordView& input, Emitter& out) override {
    MR_TRY(const auto found, field_.read(input, scratch_));
    std::string_view topic = routes_.otherwise;
    const auto route = found ? routes_.topics.find(*found) : routes_.topics.end();
    if (route != routes_.topics.end()) {
      topic = route->second;
    } else if (routes_.drop_others) {
      return {};
    }
    out.emit({input.key, input.value, input.timestamp, input.headers, topic});
    return {};
  }

 private:
  Field field_;
  Routes routes_;
  std::string scratch_;
};

Result<Routes> routes_of(const Options& options) {
  Routes routes;
  for (const auto& text : options.texts("topics")) {
    const auto equals = text.rfind('=');  // no topic has one in its name
    if (equals == std::string::npos || equals + 1 == text.size()) {
      return Error{Errc::invalid_argument,
                   "topics: expected TEXT=TOPIC such as \"click=clicks\", found \"" + text + "\""};
    }
    if (!routes.topics.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return Error{Errc::invalid_argument,
                   "topics: \"" + text.substr(0, equals) + "\" has two topics"};
    }
  }
  if (routes.topics.empty()) return Error{Errc::invalid_argument, "topics: none"};
  if (options.has("otherwise")) routes.otherwise = options.text("otherwise");
  routes.drop_others = options.boolean("drop_others");
  if (routes.drop_others && !routes.otherwise.empty()) {
    return Error{Errc::invalid_argument, "drop_others: the others go to " + routes.otherwise};
  }
  return routes;
}

class RouteFactory final : public OperatorFactory {
 public:
  Result<std::unique_ptr<Operator>> make(const OperatorSetup& setup) override {
    auto field = Field::parse(setup.options.text("field"));
    if (!field) return Error{Errc::invalid_argument, "field: " + field.error().detail};
    MR_TRY(auto routes, routes_of(setup.options));
    return std::make_unique<Route>(*std::move(field), std::move(routes));
  }
};

class RoutePlugin final : public Plugin, public OperatorTopics {
 public:
  Result<> start(Registrar& registrar, Host& /*host*/) override {
    return registrar.add(std::make_unique<RouteFactory>());
  }
  void* extension(std::string_view id) noexcept override {
    return id == extension_id ? static_cast<OperatorTopics*>(this) : nullptr;
  }
  Result<std::vector<std::string>> topics(const Options& step_options) const override {
    MR_TRY(const auto routes, routes_of(step_options));
    std::vector<std::string> topics;
    for (const auto& [text, topic] : routes.topics) topics.push_back(topic);
    if (!routes.otherwise.empty()) topics.push_back(routes.otherwise);
    return topics;
  }
};

constexpr MillraceOption options[] = {
    {"field", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max, nullptr,
     "The part of the record: key, value, header.NAME, or value.PATH of a JSON value.",
     MILLRACE_OPTION_REQUIRED},
    {"topics", MILLRACE_OPTION_TEXTS, nullptr, nullptr, unbounded_min, unbounded_max, nullptr,
     "Where to, as TEXT=TOPIC: records whose part is that text go to that topic.",
     MILLRACE_OPTION_REQUIRED},
    {"otherwise", MILLRACE_OPTION_TEXT, nullptr, nullptr, unbounded_min, unbounded_max, nullptr,
     "Topic of the others; not set: they go on to the next step.", 0},
    {"drop_others", MILLRACE_OPTION_BOOLEAN, nullptr, "false", unbounded_min, unbounded_max,
     nullptr, "Whether the others are dropped.", 0},
    {}};

}  // namespace

MILLRACE_PLUGIN(RoutePlugin, .kind = "operators", .id = "org.millrace.operators.route",
                .version = MILLRACE_VERSION,
                .summary = "records to topics by key, header or JSON field", .options = options);
