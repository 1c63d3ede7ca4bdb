// millrace stream list|describe|start|stop|delete|replace: over the admin API.
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/utf8.h>

#include "kernel/cli/admin_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct StreamVerb {
  std::string admin = "127.0.0.1:9644";
  std::string name;
  std::string step;
  std::string file;
  bool skip = false;
  bool keep_state = false;
};

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
  if (const auto reason = text_of(stream, "reason"); !reason.empty()) {
    std::cout << ": " << shown(reason, 4096);
  }
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

/// What is asked for, and what is said when it is done.
struct Change {
  std::string method;
  std::string path;
  json::object body;
};

Task<json::object> change(Environment& environment, const Context& context, const StreamVerb& verb,
                          Change wanted) {
  auto asking =
      ask_admin(environment.network(), verb.admin, std::move(wanted.method), std::move(wanted.path),
                wanted.body.empty() ? std::string() : json::serialize(wanted.body));
  MR_CO_TRY(auto answer, co_await std::move(asking));
  if (context.output == OutputFormat::json) print_json(answer);
  co_return std::move(answer);
}

void say(const Context& context, const std::string& text) {
  if (context.output != OutputFormat::json) std::cout << text << '\n';
}

Task<> start(Environment& environment, const Context& context, const StreamVerb& verb) {
  json::object body;
  if (verb.skip) body = {{"skip", true}};
  MR_CO_CHECK(co_await change(environment, context, verb,
                              {"POST", path_of(verb) + "/start", std::move(body)}));
  say(context,
      verb.name + (verb.skip ? " starts behind the record that it has failed on" : " starts"));
  co_return {};
}

Task<> stop(Environment& environment, const Context& context, const StreamVerb& verb) {
  MR_CO_CHECK(co_await change(environment, context, verb, {"POST", path_of(verb) + "/stop", {}}));
  say(context, verb.name + " has stopped");
  co_return {};
}

Task<> remove(Environment& environment, const Context& context, const StreamVerb& verb) {
  json::object body;
  if (verb.keep_state) body = {{"keep_state", true}};
  MR_CO_CHECK(
      co_await change(environment, context, verb, {"DELETE", path_of(verb), std::move(body)}));
  say(context, verb.name + (verb.keep_state ? " is deleted; its state and positions stay"
                                            : " is deleted, with its state and positions"));
  co_return {};
}

Task<> replace(Environment& environment, const Context& context, const StreamVerb& verb) {
  // The brokers' working folders may be others.
  const auto file = std::filesystem::absolute(verb.file).string();
  Change wanted{"POST", path_of(verb) + "/replace", {{"step", verb.step}, {"file", file}}};
  auto changing = change(environment, context, verb, std::move(wanted));
  MR_CO_TRY(const auto answer, co_await std::move(changing));
  const auto* kept = answer.if_contains("kept");
  auto where = replaced_where(answer);
  std::string until = ", also after a restart of the broker";
  if (!where.everywhere) {
    until = " until they restart; it is remembered once it is at every broker";
  } else if (kept != nullptr && kept->is_bool() && !kept->get_bool()) {
    until =
        " until the broker restarts: the configuration, which declares the stream, names the "
        "operator of each start";
  }
  say(context, "step " + verb.step + " of " + verb.name + " runs the operator of " + file +
                   where.at + until);
  co_return std::move(where.everywhere);
}

}  // namespace

void add_stream_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand(
      "stream", "list, describe, start, stop and delete streams; replace operators");
  verb->require_subcommand(1);
  const auto chosen = std::make_shared<StreamVerb>();
  verb->add_option("--admin", chosen->admin, "where the broker's transport http listens")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  const auto does = [&app, verb, &context, &action, chosen](CLI::App* sub, auto body) {
    sub->callback([&app, verb, &context, &action, chosen, body] {
      require_admin(app, *verb);
      action = [&context, chosen, body] {
        return run([&](Environment& environment) { return body(environment, context, *chosen); });
      };
    });
  };
  const auto named = [verb, chosen](const char* name, const char* help) {
    auto* sub = verb->add_subcommand(name, help);
    sub->add_option("NAME", chosen->name, "the stream")
        ->required()
        ->check([](const std::string& text) {
          return text.empty() ? std::string("the name of the stream is empty") : std::string();
        });
    return sub;
  };
  auto* listing = verb->add_subcommand("list", "list the streams");
  add_examples(*listing, {"millrace stream list", "millrace -o json stream list"});
  does(listing, &list);
  auto* describing = named("describe", "show a stream's steps, tasks, positions and state");
  add_examples(*describing, {"millrace stream describe words"});
  does(describing, &describe);
  auto* starting = named("start", "start a stream that was stopped, or has failed");
  starting->add_flag("--skip", chosen->skip, "pass over the record that the stream has failed on");
  add_examples(*starting, {"millrace stream start words", "millrace stream start words --skip"});
  does(starting, &start);
  auto* stopping = named("stop", "stop a stream, also over restarts of the broker");
  add_examples(*stopping, {"millrace stream stop words"});
  does(stopping, &stop);
  auto* removing =
      named("delete", "delete a stream that was declared over the admin API, and its state");
  removing->add_flag("--keep-state", chosen->keep_state,
                     "a stream of this name that is made later goes on from there");
  add_examples(*removing, {"millrace stream delete words --keep-state"});
  does(removing, &remove);
  auto* replacing = named("replace",
                          "let a step go on as the operator of another plugin file, at every "
                          "broker; one that cannot is named, and goes on as before");
  replacing->add_option("STEP", chosen->step, "the step's name")->required();
  replacing->add_option("PLUGIN_FILE", chosen->file, "on each broker's machine")
      ->required()
      ->check(not_empty);
  add_examples(*replacing, {"millrace stream replace words count /opt/words/2/count.so"});
  does(replacing, &replace);
}

}  // namespace millrace::kernel::cli
