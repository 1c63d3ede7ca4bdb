#include <millrace/fields/json_walk.h>

#include <limits>
#include <string>

#include <boost/json/basic_parser_impl.hpp>

namespace millrace {

namespace {

namespace json = boost::json;

// What the parser tells in parts, whole. It calls this by these names.
class Handler {
 public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

  explicit Handler(JsonEvents& events) : events_(events) {}

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    events_.begin_object();
    return true;
  }
  bool on_object_end(std::size_t, json::error_code&) {
    events_.end_object();
    return true;
  }
  bool on_array_begin(json::error_code&) {
    events_.begin_array();
    return true;
  }
  bool on_array_end(std::size_t, json::error_code&) {
    events_.end_array();
    return true;
  }
  bool on_key_part(json::string_view text, std::size_t, json::error_code&) { return add(text); }
  bool on_key(json::string_view text, std::size_t, json::error_code&) {
    events_.key(whole(text));
    return done();
  }
  bool on_string_part(json::string_view text, std::size_t, json::error_code&) { return add(text); }
  bool on_string(json::string_view text, std::size_t, json::error_code&) {
    events_.string(whole(text));
    return done();
  }
  bool on_number_part(json::string_view text, json::error_code&) { return add(text); }
  bool on_int64(std::int64_t, json::string_view text, json::error_code&) { return number(text); }
  bool on_uint64(std::uint64_t, json::string_view text, json::error_code&) { return number(text); }
  bool on_double(double, json::string_view text, json::error_code&) { return number(text); }
  bool on_bool(bool value, json::error_code&) {
    events_.literal(value ? "true" : "false");
    return true;
  }
  bool on_null(json::error_code&) {
    events_.literal("null");
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool add(json::string_view text) {
    parts_.append(text.data(), text.size());
    return true;
  }
  std::string_view whole(json::string_view text) {
    if (parts_.empty()) return {text.data(), text.size()};
    add(text);
    return parts_;
  }
  bool number(json::string_view text) {
    events_.literal(whole(text));
    return done();
  }
  bool done() {
    parts_.clear();
    return true;
  }

  JsonEvents& events_;
  std::string parts_;
};

}  // namespace

Result<> walk_json(Bytes text, JsonEvents& events) {
  json::parse_options options;
  options.max_depth = json_depth_max;
  json::basic_parser<Handler> parser(options, events);
  json::error_code error;
  const auto all = as_text(text);
  const auto read = parser.write_some(false, all.data(), all.size(), error);
  if (!error && read == all.size()) return {};
  const auto why = error ? error.message() : "something behind the end";
  return Error{Errc::corrupt, "not JSON: " + why + ", at byte " + std::to_string(read) + " of " +
                                  std::to_string(all.size())};
}

}  // namespace millrace
