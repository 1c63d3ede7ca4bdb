#include "kernel/streams/stream_topology.h"

#include <algorithm>

#include "kernel/config/option_value.h"
#include "kernel/config/stream_check.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

/// A value as if it had been written in the configuration.
ConfigEntry entry_of(const OptionValue& value) {
  ConfigEntry entry;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    ConfigValue::List list;
    for (const auto& text : *texts) list.push_back({{}, text});
    entry.value.value = std::move(list);
  } else {
    std::visit(
        [&entry]<class T>(const T& one) {
          if constexpr (!std::is_same_v<T, std::vector<std::string>>) entry.value.value = one;
        },
        value);
  }
  return entry;
}

}  // namespace

Result<Options> checked_options(const std::map<std::string, OptionValue, std::less<>>& given,
                                const PluginLibrary& library, std::string_view who) {
  const auto* declared = library.descriptor->options;
  std::map<std::string, OptionValue, std::less<>> values;
  for (const auto& [name, value] : given) {
    const auto* option = find_option(declared, name);
    if (option == nullptr) {
      const auto known = names_of(declared);
      return Error{Errc::invalid_argument,
                   concat(who, ": unknown option ", name, nearest_hint(name, known), "; there are ",
                          known.empty() ? "none" : joined(known))};
    }
    auto checked = value_of(*option, entry_of(value));
    if (!checked) {
      return Error{Errc::invalid_argument, concat(who, ": ", name, ": ", checked.error())};
    }
    values.emplace(name, *std::move(checked));
  }
  for (const auto* option = declared; option->name != nullptr; ++option) {
    if (values.contains(option->name)) continue;
    auto fallback = default_of(*option);
    if (!fallback) {
      return Error{Errc::invalid_argument, concat(who, ": ", option->name, " ", fallback.error())};
    }
    if (*fallback) {
      values.emplace(option->name, **std::move(fallback));
    } else if ((option->flags & MILLRACE_OPTION_REQUIRED) != 0) {
      return Error{Errc::invalid_argument,
                   concat(who, " needs the option ", option->name, ": ", allowed(*option))};
    }
  }
  return Options(std::move(values));
}

Result<Options> step_options(const StreamStep& step, const PluginLibrary& library) {
  return checked_options(step.options, library, concat("step ", step.name));
}

Result<PlannedStream> plan_stream(StreamSpec spec, const PluginFiles& files,
                                  const PluginTrial& trial) {
  std::vector<std::string> wrong;
  for (const auto& fault : check_stream(spec)) {
    const auto where = fault.step_at ? concat("steps[", *fault.step_at, "].") : std::string();
    wrong.push_back(concat(where, fault.key, ": ", fault.message));
  }
  if (!wrong.empty()) return Error{Errc::invalid_argument, joined(wrong, "; ")};
  PlannedStream planned{std::move(spec), {}, {}};
  for (const auto& step : planned.spec.steps) {
    auto path =
        step.file.empty() ? files.find("operators", step.plugin) : Result<std::string>(step.file);
    auto library = path ? load_tried(*path, "operators", trial)
                        : Result<PluginLibrary>(std::move(path).error());
    if (!library) {
      return Error{Errc::invalid_argument,
                   concat("step ", step.name, ": ", library.error().detail)};
    }
    MR_TRY(auto options, step_options(step, *library));
    planned.steps.push_back({*std::move(library), std::move(options)});
  }
  return planned;
}

}  // namespace millrace::kernel
