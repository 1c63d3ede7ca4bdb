// millrace doctor: gathers what is known of the broker of this machine, and tells what was found.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/config_check.h"
#include "kernel/cli/context.h"
#include "kernel/cli/doctor.h"
#include "kernel/cli/doctor_probe.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"
#include "kernel/log/metrics_registry.h"
#include "kernel/log/stderr_log.h"

namespace millrace::kernel::cli {

namespace doctor {

namespace {

namespace json = boost::json;

constexpr const char* packaged_config = "/etc/millrace/millrace.toml";

struct Arguments {
  ConfigSource config;
  std::string bootstrap;  // where it is given, as of the next
  std::string admin;
  std::string user;
};

// Where somebody on this machine reaches what listens there; empty where that is not known.
std::string reached_at(const ListenerFacts* listener) {
  if (listener == nullptr) return {};
  const auto& text = listener->advertise && !listener->advertise->empty() ? *listener->advertise
                                                                          : listener->listen;
  auto address = parse_address(text);
  if (!address || address->port == 0) return {};
  if (address->host == "0.0.0.0") address->host = "127.0.0.1";
  if (address->host == "::") address->host = "::1";
  return to_string(*address);
}

std::vector<ListenerFacts> listeners_of(const CheckedConfig& config, const Patient& patient) {
  std::vector<ListenerFacts> listeners;
  for (const auto& request : config.plugins) {
    if (request.kind != "transport") continue;
    const auto key = [&request](std::string_view option) {
      return concat("transport.", request.instance, ".", option);
    };
    if (!patient.settings.contains(key("listen"))) continue;
    std::optional<std::string> advertise;
    if (patient.settings.contains(key("advertise"))) advertise = patient.setting(key("advertise"));
    listeners.push_back(
        {request.instance, request.plugin, patient.setting(key("listen")), std::move(advertise)});
  }
  return listeners;
}

const ListenerFacts* listener_of(const Patient& patient, std::string_view plugin) {
  const auto found = std::ranges::find(patient.listeners, plugin, &ListenerFacts::plugin);
  return found == patient.listeners.end() ? nullptr : &*found;
}

Patient patient_of(const Arguments& arguments, const ConfigVerdict& verdict) {
  Patient patient;
  patient.config = arguments.config.path;
  for (const auto& line : verdict.wrong) {
    patient.config_wrong.push_back({Errc::invalid_argument, line});
  }
  patient.config_remarks = verdict.remarks;
  if (verdict.config) {
    for (const auto& [key, value, source, secret] : verdict.config->settings) {
      patient.settings.emplace(key, value);
    }
    patient.plugins = verdict.config->plugins.size();
    patient.listeners = listeners_of(*verdict.config, patient);
    const auto data = patient.settings.find("broker.data");
    if (data != patient.settings.end()) {
      data->second = std::filesystem::absolute(data->second).lexically_normal().string();
    }
  }
  patient.bootstrap =
      arguments.bootstrap.empty() ? reached_at(listener_of(patient, "kafka")) : arguments.bootstrap;
  patient.admin =
      arguments.admin.empty() ? reached_at(listener_of(patient, "http")) : arguments.admin;
  return patient;
}

std::size_t count_of(const Findings& findings, Severity severity) {
  return static_cast<std::size_t>(std::ranges::count(findings, severity, &Finding::severity));
}

void print_as_json(const Findings& findings) {
  json::array list;
  for (const auto& one : findings) {
    list.emplace_back(json::object{{"check", one.check},
                                   {"severity", name_of(one.severity)},
                                   {"finding", one.finding},
                                   {"evidence", one.evidence},
                                   {"remedy", one.remedy}});
  }
  print_json(json::object{{"findings", std::move(list)},
                          {"problems", count_of(findings, Severity::problem)},
                          {"warnings", count_of(findings, Severity::warning)}});
}

Tone tone_of(Severity severity) {
  if (severity == Severity::ok) return Tone::plain;
  return severity == Severity::warning ? Tone::warning : Tone::bad;
}

void print_as_table(const Findings& findings) {
  Table table({"CHECK", "STATE", "FINDING"});
  for (const auto& one : findings) {
    table.add({one.check, {name_of(one.severity), tone_of(one.severity)}, one.finding});
  }
  table.print();
  for (const auto severity : {Severity::problem, Severity::warning}) {
    for (const auto& one : findings) {
      if (one.severity != severity) continue;
      std::cout << '\n'
                << name_of(severity) << ": " << one.finding << "\n  evidence: " << one.evidence
                << "\n  remedy:   " << one.remedy << '\n';
    }
  }
}

std::string in_words(std::size_t count, std::string_view noun) {
  return count == 0 ? concat("no ", noun, "s") : counted(count, noun);
}

Result<> diagnose(const Context& context, const Arguments& arguments) {
  MR_TRY(const auto verdict, check_configuration(arguments.config, context.trial));
  auto patient = patient_of(arguments, verdict);
  StderrLog sink({.others = LogLevel::error, .of = {}}, "text");
  MetricsRegistry metrics;
  MR_TRY(const auto environment,
         RealEnvironment::start({.shards = 1, .workers = 1}, Log(sink, "environment"), metrics));
  MachineProbe probe(*environment,
                     verdict.config ? verdict.config->plugin_folders : std::vector<std::string>(),
                     context.trial);
  if (verdict.config) patient.broker = find_broker(patient.data(), probe);
  patient.user = service_user(arguments.user, patient.broker, probe);
  const auto findings = examine(patient, probe);
  environment->stop();

  const auto problems = count_of(findings, Severity::problem);
  const auto told = concat(in_words(problems, "problem"), ", ",
                           in_words(count_of(findings, Severity::warning), "warning"));
  if (context.output == OutputFormat::json) {
    print_as_json(findings);
  } else {
    print_as_table(findings);
    if (problems == 0) std::cout << '\n' << told << '\n';
  }
  if (problems > 0) return Error{Errc::conflict, told};
  return {};
}

}  // namespace

}  // namespace doctor

void add_doctor_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand(
      "doctor", "tell what is wrong on the machine of a broker, why, and what to do");
  const auto arguments = std::make_shared<doctor::Arguments>();
  std::error_code none;
  if (std::filesystem::exists(doctor::packaged_config, none))
    arguments->config.path = doctor::packaged_config;
  verb->add_option("--config", arguments->config.path,
                   concat("the broker's configuration; unless given ", doctor::packaged_config,
                          ", or the embedded default where that is not there"))
      ->type_name("FILE")
      ->check(not_empty);
  verb->add_option("--set", arguments->config.sets, "as millraced was given it")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  verb->add_option("--admin", arguments->admin,
                   "where the broker is administered, unless as its configuration says")
      ->type_name("HOST:PORT")
      ->check(not_empty);
  verb->add_option("--user", arguments->user,
                   "whom the broker runs as, unless it runs now or is that of the package")
      ->type_name("NAME")
      ->check(not_empty);
  add_examples(*verb, {"millrace doctor", "millrace doctor --config millrace.toml --output json"});
  const auto* bootstrap = app.get_option("--bootstrap");
  verb->callback([&context, &action, arguments, bootstrap] {
    if (bootstrap->count() > 0) arguments->bootstrap = context.bootstrap;
    action = [&context, arguments] { return doctor::diagnose(context, *arguments); };
  });
}

}  // namespace millrace::kernel::cli
