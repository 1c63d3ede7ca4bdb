#include "kernel/config/stream_tables.h"

#include <algorithm>

#include "kernel/config/kernel_options.h"
#include "kernel/config/option_value.h"
#include "kernel/config/stream_check.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

constexpr const char* steps_key = "steps";
constexpr const char* operator_key = "operator";

/// The entries of `steps`; nullptr when it is none or no list.
const ConfigValue::List* steps_of(const ConfigTable& stream) {
  const auto* entry = stream.find(steps_key);
  return entry == nullptr ? nullptr : std::get_if<ConfigValue::List>(&entry->value.value);
}

const std::string* operator_of(const ConfigValue& step) {
  const auto* table = std::get_if<ConfigTable>(&step.value);
  const auto* entry = table == nullptr ? nullptr : table->find(operator_key);
  return entry == nullptr ? nullptr : std::get_if<std::string>(&entry->value.value);
}

class StreamTable {
 public:
  StreamTable(const std::string& name, const ConfigEntry& entry,
              const std::vector<DeclaredStep>& declared, const ReadTable& read,
              ConfigErrors& errors)
      : path_("stream." + quoted_key(name)),
        entry_(entry),
        declared_(declared),
        read_(read),
        errors_(errors) {
    stream_.spec.name = name;
    stream_.place = entry.key;
  }

  Settings::Stream check() {
    const auto* table = std::get_if<ConfigTable>(&entry_.value.value);
    if (table == nullptr) {
      fail(entry_.key, path_ + " stands in the table of one stream, such as [stream.clean]");
      return stream_;
    }
    const auto before = errors_.size();
    settings(*table);
    steps(*table);
    if (errors_.size() == before) faults(*table);
    return stream_;
  }

 private:
  void fail(const ConfigPlace& place, std::string message) {
    errors_.push_back({place, std::move(message)});
  }

  void settings(const ConfigTable& table) {
    auto values = read_(table, path_, stream_options(), {steps_key}, entry_.key);
    const Options options(std::move(values));
    auto& spec = stream_.spec;
    const auto text = [&options](const char* name) {
      return options.has(name) ? options.text(name) : std::string();
    };
    if (options.has("sources")) spec.sources = options.texts("sources");
    spec.sink = text("sink");
    spec.guarantee = text("guarantee");
    spec.from = text("from");
    spec.on_error = text("on-error");
    spec.dead_letter = text("dead-letter");
    if (options.has("memory")) spec.memory_bytes = options.integer("memory");
    if (options.has("timeout")) spec.timeout_ms = options.integer("timeout");
  }

  void steps(const ConfigTable& table) {
    const auto* list = steps_of(table);
    if (list == nullptr || list->empty()) {
      const auto* entry = table.find(steps_key);
      fail(entry == nullptr ? entry_.key : entry->key,
           concat(path_, ": expected its steps: [[", path_, ".steps]] and operator = \"NAME\""));
      return;
    }
    for (std::size_t at = 0; at < list->size(); ++at) step(at, (*list)[at]);
  }

  void step(std::size_t at, const ConfigValue& value) {
    const auto path = concat(path_, ".", steps_key, "[", at, "]");
    const auto* table = std::get_if<ConfigTable>(&value.value);
    if (table == nullptr) {
      return fail(value.place, concat(path, ": expected a table with operator = \"NAME\""));
    }
    auto& step = stream_.spec.steps.emplace_back();
    auto& checked = stream_.steps.emplace_back();
    checked.place = value.place;
    // Of the step's own keys first: which options there are beside them depends on the operator.
    ConfigTable own;
    ConfigTable others;
    for (const auto& [key, entry] : table->entries()) {
      (find_option(stream_step_options(), key) == nullptr ? others : own).put(key, entry);
    }
    const auto known = Options(read_(own, path, stream_step_options(), {}, value.place));
    if (known.has("name")) step.name = known.text("name");
    if (!known.has(operator_key)) return;
    step.plugin = known.text(operator_key);
    checked.place = table->find(operator_key)->value.place;
    const auto declared = std::ranges::find_if(declared_, [&](const DeclaredStep& one) {
      return one.request.stream == stream_.spec.name && one.request.step_at == at;
    });
    if (declared == declared_.end() || declared->options == nullptr) return;
    step.options = read_(others, path, declared->options, {}, value.place);
    checked.options = Options(step.options);
    checked.places = places_in(others);
  }

  void faults(const ConfigTable& table) {
    for (const auto& fault : check_stream(stream_.spec)) {
      const ConfigTable* within = &table;
      ConfigPlace place = entry_.key;
      auto path = path_;
      if (fault.step_at) {
        const auto& step = (*steps_of(table))[*fault.step_at];
        within = std::get_if<ConfigTable>(&step.value);
        place = step.place;
        path += concat(".", steps_key, "[", *fault.step_at, "]");
      }
      if (const auto* entry = within->find(fault.key)) place = entry->value.place;
      fail(place, concat(path, ".", fault.key, ": ", fault.message));
    }
  }

  std::string path_;
  const ConfigEntry& entry_;
  const std::vector<DeclaredStep>& declared_;
  const ReadTable& read_;
  ConfigErrors& errors_;
  Settings::Stream stream_;
};

}  // namespace

std::vector<StepRequest> requested_steps(const ConfigTable& streams) {
  std::vector<StepRequest> requests;
  for (const auto& [name, entry] : streams.entries()) {
    const auto* table = std::get_if<ConfigTable>(&entry.value.value);
    const auto* list = table == nullptr ? nullptr : steps_of(*table);
    if (list == nullptr) continue;
    for (std::size_t at = 0; at < list->size(); ++at) {
      const auto* plugin = operator_of((*list)[at]);
      // What is no name of a file is reported as such.
      if (plugin == nullptr || plugin->empty() || quoted_key(*plugin) != *plugin) continue;
      const auto& step = std::get<ConfigTable>((*list)[at].value);
      requests.push_back({name,
                          at,
                          {tables::operators, concat(name, ".", at), *plugin,
                           step.find(operator_key)->value.place}});
    }
  }
  return requests;
}

std::vector<Settings::Stream> check_streams(const ConfigTable& streams,
                                            const std::vector<DeclaredStep>& steps,
                                            const ReadTable& read, ConfigErrors& errors) {
  std::vector<Settings::Stream> checked;
  for (const auto& [name, entry] : streams.entries()) {
    checked.push_back(StreamTable(name, entry, steps, read, errors).check());
  }
  return checked;
}

}  // namespace millrace::kernel
