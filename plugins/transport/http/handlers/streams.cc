// /admin/streams: listed, shown, made, removed, started, stopped; an operator replaced.
#include <algorithm>
#include <limits>
#include <utility>

#include <boost/json.hpp>

#include <millrace/replacements.h>
#include <millrace/streams.h>

#include "../json.h"
#include "../members.h"
#include "handlers.h"
#include "replaced_json.h"

namespace millrace::http_transport {
namespace {

namespace json = boost::json;

constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();

Streams* streams_of(Exchange& exchange) { return exchange.services.broker.service<Streams>(); }

HttpResponse no_streams() {
  return error_response(404, "not_loaded", "this broker runs no streams");
}

/// What a service has refused; an error of the broker's end is the caller's.
Result<HttpResponse> refused(const Error& error) {
  switch (error.code) {
    case Errc::closed:
    case Errc::cancelled: return error;
    case Errc::not_found: return error_response(404, "not_found", error.detail);
    case Errc::conflict: return error_response(409, "conflict", error.detail);
    case Errc::invalid_argument:
    case Errc::incompatible: return error_response(400, "invalid_stream", error.detail);
    default: return error_response(500, "failed", error.detail);
  }
}

json::value option_json(const OptionValue& option) {
  return std::visit([](const auto& value) { return json::value_from(value); }, option);
}

json::object spec_json(const StreamSpec& spec) {
  json::array steps;
  for (const auto& step : spec.steps) {
    json::object options;
    for (const auto& [name, value] : step.options) options[name] = option_json(value);
    steps.push_back(
        {{"name", step.name}, {"operator", step.plugin}, {"options", std::move(options)}});
  }
  return {{"name", spec.name},
          {"sources", json::value_from(spec.sources)},
          {"steps", std::move(steps)},
          {"sink", spec.sink},
          {"guarantee", spec.guarantee},
          {"from", spec.from},
          {"on_error", spec.on_error},
          {"dead_letter", spec.dead_letter},
          {"memory_bytes", spec.memory_bytes},
          {"timeout_ms", spec.timeout_ms}};
}

/// Records behind, of all partitions; null while that is not known.
json::value lag_json(const StreamFact& stream) {
  std::int64_t lag = 0;
  for (const auto& task : stream.tasks) {
    if (task.sources.empty()) return nullptr;
    for (const auto& source : task.sources) {
      if (source.lag < 0) return nullptr;
      lag += source.lag;
    }
  }
  if (stream.tasks.empty()) return nullptr;
  return lag;
}

json::object summary_json(const StreamFact& stream) {
  return {{"name", stream.spec.name},     {"state", stream.state},
          {"reason", stream.reason},      {"sources", json::value_from(stream.spec.sources)},
          {"sink", stream.spec.sink},     {"declared_in", stream.declared_in},
          {"tasks", stream.tasks.size()}, {"lag", lag_json(stream)}};
}

json::object task_json(const StreamTaskFact& task) {
  json::array sources;
  for (const auto& source : task.sources) {
    json::object shown{{"topic", source.topic}, {"position", source.position.value}};
    if (source.lag >= 0) shown["lag"] = source.lag;
    sources.emplace_back(std::move(shown));
  }
  return {{"partition", task.partition},     {"state", task.state},
          {"reason", task.reason},           {"sources", std::move(sources)},
          {"state_bytes", task.state_bytes}, {"restored_records", task.state_restored_records},
          {"restore_ms", task.restore_ms}};
}

json::object stream_json(const StreamFact& stream) {
  auto shown = summary_json(stream);
  shown["spec"] = spec_json(stream.spec);
  json::array steps;
  for (const auto& step : stream.steps) {
    steps.push_back({{"name", step.name},
                     {"operator", step.plugin},
                     {"id", step.id},
                     {"version", step.version},
                     {"path", step.path},
                     {"records_in", step.records_in},
                     {"records_out", step.records_out},
                     {"errors", step.errors},
                     {"nanoseconds", step.nanoseconds},
                     {"state_entries", step.state_entries}});
  }
  shown["steps"] = std::move(steps);
  json::array tasks;
  for (const auto& task : stream.tasks) tasks.emplace_back(task_json(task));
  shown["tasks"] = std::move(tasks);
  return shown;
}

Error wrong(std::string_view name, std::string_view expected) {
  return {Errc::invalid_argument, std::string(name) + ": expected " + std::string(expected)};
}

Result<std::vector<std::string>> read_texts(std::string_view name, const json::value& value) {
  if (!value.is_array()) return wrong(name, "a list of texts");
  std::vector<std::string> texts;
  for (const auto& element : value.get_array()) {
    if (!element.is_string()) return wrong(name, "a list of texts");
    texts.emplace_back(element.get_string());
  }
  return texts;
}

Result<OptionValue> read_option(std::string_view name, const json::value& value) {
  if (value.is_string()) return OptionValue(std::string(value.get_string()));
  if (value.is_int64()) return OptionValue(value.get_int64());
  if (value.is_bool()) return OptionValue(value.get_bool());
  if (value.is_double()) return OptionValue(value.get_double());
  MR_TRY(auto texts, read_texts(name, value));
  return OptionValue(std::move(texts));
}

Result<StreamStep> read_step(const json::value& value) {
  if (!value.is_object()) {
    return wrong("steps", R"(a list of {"operator": "NAME", "name": "NAME", "options": {…}})");
  }
  StreamStep step;
  for (const auto& [key, member] : value.get_object()) {
    if (key == "options" && member.is_object()) {
      for (const auto& [name, written] : member.get_object()) {
        MR_TRY(auto option, read_option(name, written));
        step.options.emplace(std::string(name), std::move(option));
      }
    } else if (key == "operator" && member.is_string()) {
      step.plugin = member.get_string();
    } else if (key == "name" && member.is_string()) {
      step.name = member.get_string();
    } else {
      return wrong(std::string("steps: ") + std::string(key),
                   "operator and name as texts, options as an object, and nothing else");
    }
  }
  return step;
}

/// `{"name": "clean", "sources": ["orders"], "steps": [{"operator": "filter", "options": {…}}],
/// "sink": "orders.clean", …}`; what [stream.NAME] has a default for may be left out.
Result<StreamSpec> read_spec(const std::string& body) {
  MR_TRY(auto members, Members::read(body));
  StreamSpec spec;
  const auto text = [&members](std::string_view name, std::string& into) -> Result<> {
    MR_TRY(auto value, members.text(name));
    if (value) into = *std::move(value);
    return {};
  };
  const auto integer = [&members](std::string_view name, std::int64_t& into) -> Result<> {
    MR_TRY(const auto value, members.integer(name, 1, int64_max));
    if (value) into = *value;
    return {};
  };
  MR_CHECK(text("name", spec.name));
  MR_CHECK(text("sink", spec.sink));
  MR_CHECK(text("guarantee", spec.guarantee));
  MR_CHECK(text("from", spec.from));
  MR_CHECK(text("on_error", spec.on_error));
  MR_CHECK(text("dead_letter", spec.dead_letter));
  MR_CHECK(integer("memory_bytes", spec.memory_bytes));
  MR_CHECK(integer("timeout_ms", spec.timeout_ms));
  const auto sources = members.any("sources");
  if (sources) {
    MR_TRY(spec.sources, read_texts("sources", *sources));
  }
  const auto steps = members.any("steps");
  if (steps) {
    if (!steps->is_array()) return wrong("steps", "a list of them");
    for (const auto& step : steps->get_array()) {
      MR_TRY(auto one, read_step(step));
      spec.steps.push_back(std::move(one));
    }
  }
  MR_CHECK(members.end());
  return spec;
}

struct Replacement {
  std::string step;
  std::string file;
};
/// `{"step": "filter", "file": "/opt/filter.so"}`; the file is one of each broker's machine.
Result<Replacement> read_replacement(const std::string& body) {
  MR_TRY(auto members, Members::read(body));
  MR_TRY(auto step, members.text("step"));
  MR_TRY(auto file, members.text("file"));
  MR_CHECK(members.end());
  if (!step) return wrong("step", "the name of a step");
  if (!file) return wrong("file", "the path of a plugin on each broker's machine");
  return Replacement{*std::move(step), *std::move(file)};
}

/// `{"NAME": true}`; nothing is false.
Result<bool> read_flag(const std::string& body, std::string_view name) {
  if (body.empty()) return false;
  MR_TRY(auto members, Members::read(body));
  MR_TRY(const auto flag, members.boolean(name));
  MR_CHECK(members.end());
  return flag.value_or(false);
}

}  // namespace

Task<HttpResponse> handle_list_streams(Exchange& exchange) {
  auto* streams = streams_of(exchange);
  if (streams == nullptr) co_return no_streams();
  auto asking = streams->list();
  MR_CO_TRY(const auto facts, co_await std::move(asking));
  json::array shown;
  for (const auto& stream : facts) shown.emplace_back(summary_json(stream));
  co_return json_response({{"streams", std::move(shown)}});
}

Task<HttpResponse> handle_show_stream(Exchange& exchange) {
  auto* streams = streams_of(exchange);
  if (streams == nullptr) co_return no_streams();
  auto asking = streams->describe(exchange.arguments.front());
  const auto fact = co_await std::move(asking);
  if (!fact) co_return refused(fact.error());
  co_return json_response(stream_json(*fact));
}

Task<HttpResponse> handle_create_stream(Exchange& exchange) {
  auto* streams = streams_of(exchange);
  if (streams == nullptr) co_return no_streams();
  auto spec = read_spec(exchange.request.body);
  if (!spec) co_return bad_body(spec.error());
  const auto name = spec->name;
  auto creating = streams->create(*std::move(spec));
  const auto created = co_await std::move(creating);
  if (!created) co_return refused(created.error());
  co_return json_response({{"name", name}}, 201);
}

Task<HttpResponse> handle_delete_stream(Exchange& exchange) {
  auto* streams = streams_of(exchange);
  if (streams == nullptr) co_return no_streams();
  const auto keep = read_flag(exchange.request.body, "keep_state");
  if (!keep) co_return bad_body(keep.error());
  const auto& name = exchange.arguments.front();
  auto removing = *keep ? streams->remove_but_state(name) : streams->remove(name);
  const auto removed = co_await std::move(removing);
  if (!removed) co_return refused(removed.error());
  co_return json_response({{"deleted", exchange.arguments.front()}});
}

Task<HttpResponse> handle_start_stream(Exchange& exchange) {
  auto* streams = streams_of(exchange);
  if (streams == nullptr) co_return no_streams();
  const auto skip = read_flag(exchange.request.body, "skip");
  if (!skip) co_return bad_body(skip.error());
  const auto& name = exchange.arguments.front();
  auto starting = *skip ? streams->start_behind_failed(name) : streams->start(name);
  const auto started = co_await std::move(starting);
  if (!started) co_return refused(started.error());
  co_return json_response({{"started", exchange.arguments.front()}});
}

Task<HttpResponse> handle_stop_stream(Exchange& exchange) {
  auto* streams = streams_of(exchange);
  if (streams == nullptr) co_return no_streams();
  auto stopping = streams->stop(exchange.arguments.front());
  const auto stopped = co_await std::move(stopping);
  if (!stopped) co_return refused(stopped.error());
  co_return json_response({{"stopped", exchange.arguments.front()}});
}

Task<HttpResponse> handle_replace_operator(Exchange& exchange) {
  auto* streams = streams_of(exchange);
  auto* replacements = exchange.services.broker.service<Replacements>();
  if (streams == nullptr || replacements == nullptr) co_return no_streams();
  auto wanted = read_replacement(exchange.request.body);
  if (!wanted) co_return bad_body(wanted.error());
  const auto& name = exchange.arguments.front();
  auto replacing = replacements->replace_operator(name, wanted->step, wanted->file);
  const auto replaced = co_await std::move(replacing);
  if (!replaced) co_return refused(replaced.error());
  auto asking = streams->describe(name);
  const auto fact = co_await std::move(asking);
  // One of the configuration has its operator from there at the next start; what is not at every
  // broker is not remembered.
  const bool kept = fact && fact->declared_in == "admin" &&
                    std::ranges::all_of(*replaced, &std::string::empty, &ReplacedAt::refused);
  co_return json_response({{"stream", name},
                           {"replaced", wanted->step},
                           {"file", wanted->file},
                           {"kept", kept},
                           {"brokers", replaced_json(*replaced)}});
}

}  // namespace millrace::http_transport
