// millrace stream list|describe|start|stop|replace: over the admin API.
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/admin_client.h"
#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct StreamVerb {
  std::string admin = "127.0.0.1:9644";
  std::string name;
  std::string step;
  std::string file;
};

/// A member as it is shown; "?" where there is none.
std::string text_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return "?";
  if (value->is_string()) return std::string(value->get_string());
  return json::serialize(*value);
}

std::string joined(const json::object& object, std::string_view name) {
  std::string text;
  const auto* value = object.if_contains(name);
  if (value == nullptr || !value->is_array()) return text;
  for (const auto& element : value->get_array()) {
    if (!text.empty()) text += ',';
    if (element.is_string()) text += element.get_string();
  }
  return text;
}

template <class F>
void for_each_object(const json::object& object, std::string_view name, F each) {
  const auto* value = object.if_contains(name);
  if (value == nullptr || !value->is_array()) return;
  for (const auto& element : value->get_array()) {
    if (element.is_object()) each(element.get_object());
  }
}

std::string path_of(const StreamVerb& verb) { return "/admin/streams/" + path_segment(verb.name); }

Task<> list(Environment& environment, const Context& context, const StreamVerb& verb) {
  auto asking = ask_admin(environment.network(), verb.admin, "GET", "/admin/streams");
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (context.output == OutputFormat::json) {
    print_json(answer);
    co_return {};
  }
  Table table({"STREAM", "STATE", "SOURCES", "SINK", "TASKS", "LAG", "REASON"});
  for_each_object(answer, "streams", [&table](const json::object& stream) {
    table.add({text_of(stream, "name"), text_of(stream, "state"), joined(stream, "sources"),
               text_of(stream, "sink"), text_of(stream, "tasks"), text_of(stream, "lag"),
               text_of(stream, "reason")});
  });
  table.print();
  co_return {};
}

void print_stream(const json::object& stream) {
  std::cout << text_of(stream, "name") << ": " << text_of(stream, "state");
  if (const auto reason = text_of(stream, "reason"); !reason.empty()) std::cout << ": " << reason;
  std::cout << "\n\nsources      " << joined(stream, "sources") << "\nsink         "
            << text_of(stream, "sink") << "\nlag          " << text_of(stream, "lag")
            << "\ndeclared in  " << text_of(stream, "declared_in") << "\n\n";
  Table steps({"STEP", "OPERATOR", "VERSION", "IN", "OUT", "ERRORS", "STATE", "FILE"});
  for_each_object(stream, "steps", [&steps](const json::object& step) {
    steps.add({text_of(step, "name"), text_of(step, "operator"), text_of(step, "version"),
               text_of(step, "records_in"), text_of(step, "records_out"), text_of(step, "errors"),
               text_of(step, "state_entries"), text_of(step, "path")});
  });
  steps.print();
  std::cout << '\n';
  Table tasks({"PARTITION", "STATE", "SOURCE", "POSITION", "LAG", "STATE BYTES", "REASON"});
  for_each_object(stream, "tasks", [&tasks](const json::object& task) {
    for_each_object(task, "sources", [&](const json::object& source) {
      tasks.add({text_of(task, "partition"), text_of(task, "state"), text_of(source, "topic"),
                 text_of(source, "position"), text_of(source, "lag"), text_of(task, "state_bytes"),
                 text_of(task, "reason")});
    });
  });
  tasks.print();
}

Task<> describe(Environment& environment, const Context& context, const StreamVerb& verb) {
  auto asking = ask_admin(environment.network(), verb.admin, "GET", path_of(verb));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (context.output == OutputFormat::json) {
    print_json(answer);
  } else {
    print_stream(answer);
  }
  co_return {};
}

Task<> change(Environment& environment, const Context& context, const StreamVerb& verb,
              std::string how, std::string done) {
  json::object body;
  if (how == "replace") {
    // The broker's working folder may be another.
    body = {{"step", verb.step}, {"file", std::filesystem::absolute(verb.file).string()}};
  }
  auto asking = ask_admin(environment.network(), verb.admin, "POST", path_of(verb) + "/" + how,
                          body.empty() ? std::string() : json::serialize(body));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (context.output == OutputFormat::json) {
    print_json(answer);
  } else {
    std::cout << verb.name << ' ' << done << '\n';
  }
  co_return {};
}

}  // namespace

void add_stream_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("stream", "list, describe, start and stop streams");
  verb->require_subcommand(1);
  const auto chosen = std::make_shared<StreamVerb>();
  verb->add_option("--admin", chosen->admin, "where the broker's transport http listens")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  const auto does = [&context, &action, chosen](CLI::App* sub, auto body) {
    sub->callback([&context, &action, chosen, body] {
      action = [&context, chosen, body] {
        return run([&](Environment& environment) { return body(environment, context, *chosen); });
      };
    });
  };
  const auto named = [verb, chosen](const char* name, const char* help) {
    auto* sub = verb->add_subcommand(name, help);
    sub->add_option("NAME", chosen->name, "the stream")->required();
    return sub;
  };
  does(verb->add_subcommand("list", "list the streams"), &list);
  does(named("describe", "show a stream's steps, tasks, positions and state"), &describe);
  does(named("start", "start a stream that was stopped, or has failed"),
       [](Environment& environment, const Context& with, const StreamVerb& what) {
         return change(environment, with, what, "start", "starts");
       });
  does(named("stop", "stop a stream, also over restarts of the broker"),
       [](Environment& environment, const Context& with, const StreamVerb& what) {
         return change(environment, with, what, "stop", "has stopped");
       });
  auto* replace = named("replace", "let a step go on as the operator of another plugin file");
  replace->add_option("STEP", chosen->step, "the step's name")->required();
  replace->add_option("PLUGIN_FILE", chosen->file, "on the broker's machine")->required();
  does(replace, [](Environment& environment, const Context& with, const StreamVerb& what) {
    return change(environment, with, what, "replace", "goes on with " + what.file);
  });
}

}  // namespace millrace::kernel::cli
