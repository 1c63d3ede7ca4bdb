#include "kernel/streams/stream_store.h"

#include <boost/json.hpp>

#include "kernel/cluster/format_version.h"
#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

namespace json = boost::json;

constexpr int spec_version = 1;
constexpr auto streams = StreamStore::specs_prefix;
constexpr auto stopped_streams = StreamStore::stopped_prefix;

std::string key_of(std::string_view folder, std::string_view name) {
  return concat(folder, "/", name);
}

json::value value_of(const OptionValue& option) {
  return std::visit([](const auto& value) { return json::value_from(value); }, option);
}

std::optional<OptionValue> option_of(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_int64()) return value.get_int64();
  if (value.is_bool()) return value.get_bool();
  if (value.is_double()) return value.get_double();
  if (!value.is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const auto& element : value.get_array()) {
    if (!element.is_string()) return std::nullopt;
    texts.emplace_back(element.get_string());
  }
  return texts;
}

/// Members of an object; the first that is not as expected is remembered.
class Reader {
 public:
  explicit Reader(const json::object& object) : object_(object) {}

  bool ok() const noexcept { return ok_; }
  void text(std::string_view name, std::string& into) {
    const auto* value = object_.if_contains(name);
    if (value == nullptr) return;
    if (value->is_string()) {
      into = value->get_string();
    } else {
      ok_ = false;
    }
  }
  void integer(std::string_view name, std::int64_t& into) {
    const auto* value = object_.if_contains(name);
    if (value == nullptr) return;
    if (value->is_int64()) {
      into = value->get_int64();
    } else {
      ok_ = false;
    }
  }
  template <class F>
  void array(std::string_view name, F each) {
    const auto* value = object_.if_contains(name);
    if (value == nullptr || !value->is_array()) {
      ok_ = false;
      return;
    }
    for (const auto& element : value->get_array()) ok_ = ok_ && each(element);
  }

 private:
  const json::object& object_;
  bool ok_ = true;
};

bool read_step(const json::value& value, StreamStep& step) {
  if (!value.is_object()) return false;
  Reader reader(value.get_object());
  reader.text("name", step.name);
  reader.text("operator", step.plugin);
  reader.text("file", step.file);
  const auto* options = value.get_object().if_contains("options");
  if (options == nullptr) return reader.ok();
  if (!options->is_object()) return false;
  for (const auto& [name, written] : options->get_object()) {
    auto option = option_of(written);
    if (!option) return false;
    step.options.emplace(std::string(name), *std::move(option));
  }
  return reader.ok();
}

}  // namespace

std::string encode_stream(const StreamSpec& spec) {
  json::array steps;
  for (const auto& step : spec.steps) {
    json::object options;
    for (const auto& [name, value] : step.options) options[name] = value_of(value);
    json::object encoded{
        {"name", step.name}, {"operator", step.plugin}, {"options", std::move(options)}};
    if (!step.file.empty()) encoded["file"] = step.file;
    steps.emplace_back(std::move(encoded));
  }
  json::object object{{"sources", json::value_from(spec.sources)},
                      {"steps", std::move(steps)},
                      {"sink", spec.sink},
                      {"guarantee", spec.guarantee},
                      {"from", spec.from},
                      {"on_error", spec.on_error},
                      {"dead_letter", spec.dead_letter},
                      {"memory_bytes", spec.memory_bytes},
                      {"timeout_ms", spec.timeout_ms}};
  return json::serialize(json::object{{"version", spec_version}, {"spec", std::move(object)}});
}

Result<StreamSpec> decode_stream(std::string_view name, std::string_view text) {
  const auto malformed = [&] {
    return Error{Errc::corrupt, concat(key_of(streams, name), " is malformed: ", text)};
  };
  boost::system::error_code failed;
  const auto value = json::parse(text, failed);
  if (failed || !value.is_object()) return malformed();
  MR_CHECK(check_format(key_of(streams, name), value.get_object(), spec_version));
  const auto* object = value.get_object().if_contains("spec");
  if (object == nullptr || !object->is_object()) return malformed();
  StreamSpec spec;
  spec.name = name;
  Reader reader(object->get_object());
  reader.array("sources", [&](const json::value& source) {
    if (!source.is_string()) return false;
    spec.sources.emplace_back(source.get_string());
    return true;
  });
  reader.array("steps",
               [&](const json::value& step) { return read_step(step, spec.steps.emplace_back()); });
  reader.text("sink", spec.sink);
  reader.text("guarantee", spec.guarantee);
  reader.text("from", spec.from);
  reader.text("on_error", spec.on_error);
  reader.text("dead_letter", spec.dead_letter);
  reader.integer("memory_bytes", spec.memory_bytes);
  reader.integer("timeout_ms", spec.timeout_ms);
  if (!reader.ok()) return malformed();
  return spec;
}

Task<StoredStreams> StreamStore::read() {
  StoredStreams stored;
  MR_CO_TRY(const auto names, co_await coordination_.list(std::string(streams)));
  for (const auto& name : names) {
    const auto found = co_await coordination_.get(key_of(streams, name));
    if (!found && found.error().code == Errc::not_found) continue;  // it goes just now
    if (!found) co_return found.error();
    MR_CO_TRY(auto spec, decode_stream(name, found->value));
    stored.specs.push_back(std::move(spec));
  }
  MR_CO_TRY(auto stopped, co_await coordination_.list(std::string(stopped_streams)));
  stored.stopped.insert(stopped.begin(), stopped.end());
  co_return std::move(stored);
}

Task<> StreamStore::put(StreamSpec spec, bool replace) {
  std::vector<Write> writes;
  writes.push_back({.key = key_of(streams, spec.name),
                    .value = encode_stream(spec),
                    .expected = replace ? any_version : must_not_exist});
  const auto done = co_await coordination_.commit(std::move(writes));
  if (done) co_return {};
  if (done.error().code == Errc::conflict) {
    co_return Error{Errc::conflict, concat("there is a stream ", spec.name, " already")};
  }
  co_return done.error();
}

Task<> StreamStore::forget(std::string key) {
  std::vector<Write> writes;
  writes.push_back({.key = std::move(key)});
  const auto done = co_await coordination_.commit(std::move(writes));
  if (done || done.error().code == Errc::not_found) co_return {};
  co_return done.error();
}

Task<> StreamStore::remove(std::string name) {
  MR_CO_CHECK(co_await forget(key_of(streams, name)));
  co_return co_await forget(key_of(stopped_streams, name));
}

Task<> StreamStore::set_stopped(std::string name, bool stopped) {
  auto key = key_of(stopped_streams, name);
  if (!stopped) co_return co_await forget(std::move(key));
  std::vector<Write> writes;
  writes.push_back({.key = std::move(key), .value = R"({"version":1})"});
  const auto done = co_await coordination_.commit(std::move(writes));
  if (!done) co_return done.error();
  co_return {};
}

}  // namespace millrace::kernel
