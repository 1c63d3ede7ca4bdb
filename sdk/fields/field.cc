#include <millrace/fields/field.h>

#include <charconv>

#include <millrace/fields/json_text.h>

namespace millrace {

namespace {

constexpr std::string_view forms =
    R"(expected key, value, header.NAME, or value.PATH such as value.customer.id)";

// Keeps the text of the value at one path.
class FieldReader final : public JsonEvents {
 public:
  FieldReader(const std::vector<std::string>& path, std::string& into) : path_(path), into_(into) {}

  bool found() const noexcept { return found_; }

  void begin_object() override {
    if (enter()) text_.begin_object();
    push(false);
  }
  void begin_array() override {
    if (enter()) text_.begin_array();
    push(true);
  }
  void end_object() override {
    if (keeping_) text_.end_object();
    pop();
  }
  void end_array() override {
    if (keeping_) text_.end_array();
    pop();
  }
  void key(std::string_view name) override {
    if (keeping_) {
      text_.key(name);
    } else if (levels_.back().on_path) {
      here_ = name == path_[levels_.size() - 1];
    }
  }
  void string(std::string_view text) override {
    if (keeping_) {
      text_.string(text);
    } else if (enter()) {
      keep(text);
    }
  }
  void literal(std::string_view text) override {
    if (keeping_) {
      text_.literal(text);
    } else if (enter()) {
      keep(text);
    }
  }

 private:
  struct Level {
    bool array = false;
    bool on_path = false;  // it is where the path leads so far
    std::size_t next = 0;  // element
  };

  // A value begins. True when it is to be kept: it is the one, or within it.
  bool enter() {
    if (keeping_) return true;
    entered_ = levels_.empty();
    if (!levels_.empty()) {
      auto& level = levels_.back();
      if (level.array) here_ = level.on_path && is_number(path_[levels_.size() - 1], level.next++);
      entered_ = level.on_path && std::exchange(here_, false);
    }
    return entered_ && levels_.size() == path_.size();
  }
  void push(bool array) {
    if (!keeping_ && entered_ && levels_.size() == path_.size()) {
      keeping_ = true;
      kept_below_ = levels_.size();
    }
    levels_.push_back({array, !keeping_ && entered_, 0});
  }
  void pop() {
    levels_.pop_back();
    if (!keeping_ || levels_.size() > kept_below_) return;
    keeping_ = false;
    keep(text_.text());
    text_.clear();
  }
  // Of members with one name the last counts, as in most parsers.
  void keep(std::string_view text) {
    into_ = text;
    found_ = true;
  }
  static bool is_number(std::string_view text, std::size_t number) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && value == number;
  }

  const std::vector<std::string>& path_;
  std::string& into_;
  std::vector<Level> levels_;
  JsonText text_;
  bool here_ = false;  // the value behind the key is the next on the path
  bool entered_ = false;
  bool keeping_ = false;
  std::size_t kept_below_ = 0;
  bool found_ = false;
};

Result<std::vector<std::string>> parse_path(std::string_view text) {
  std::vector<std::string> path;
  while (true) {
    if (text.starts_with('"')) {
      const auto end = text.find('"', 1);
      if (end == std::string_view::npos) {
        return Error{Errc::invalid_argument, "a quote that does not end"};
      }
      path.emplace_back(text.substr(1, end - 1));
      text.remove_prefix(end + 1);
      if (!text.empty() && !text.starts_with('.')) {
        return Error{Errc::invalid_argument, "expected a dot behind a quoted name"};
      }
    } else {
      const auto end = std::min(text.find('.'), text.size());
      if (end == 0) return Error{Errc::invalid_argument, "a name is missing"};
      path.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
    }
    if (text.empty()) return path;
    text.remove_prefix(1);
  }
}

}  // namespace

Result<Field> Field::parse(std::string_view name) {
  Field field;
  field.name_ = name;
  if (name == "key") return field;
  if (name == "value") {
    field.part_ = Part::value;
    return field;
  }
  if (name.starts_with("header.") && name.size() > 7) {
    field.part_ = Part::header;
    field.header_ = name.substr(7);
    return field;
  }
  std::string found = "\"" + std::string(name) + "\"";
  if (!name.starts_with("value.")) {
    return Error{Errc::invalid_argument, std::string(forms) + ", found " + found};
  }
  auto path = parse_path(name.substr(6));
  if (!path) return Error{Errc::invalid_argument, found + ": " + path.error().detail};
  field.part_ = Part::json;
  field.path_ = *std::move(path);
  return field;
}

Result<std::optional<std::string_view>> Field::read(const RecordView& record,
                                                    std::string& scratch) const {
  using Found = std::optional<std::string_view>;
  const auto text_of = [](const std::optional<Bytes>& bytes) {
    return bytes ? Found(as_text(*bytes)) : std::nullopt;
  };
  switch (part_) {
    case Part::key: return text_of(record.key);
    case Part::value: return text_of(record.value);
    case Part::header:
      for (auto at = record.headers.rbegin(); at != record.headers.rend(); ++at) {
        if (at->key == header_) return text_of(at->value);
      }
      return Found();
    case Part::json: break;
  }
  if (!record.value) return Found();
  FieldReader reader(path_, scratch);
  MR_CHECK(walk_json(*record.value, reader));
  return reader.found() ? Found(scratch) : std::nullopt;
}

}  // namespace millrace
