#include "json_rules.h"

#include <utility>
#include <vector>

#include <millrace/fields/json_text.h>

using namespace millrace;

namespace {

class Rewriter final : public JsonEvents {
 public:
  explicit Rewriter(const Rules& rules) : rules_(rules) {}

  bool has_members() const noexcept { return has_members_; }
  std::string take() { return text_.take(); }

  void begin_object() override { begin(false); }
  void end_object() override { end(false); }
  void begin_array() override { begin(true); }
  void end_array() override { end(true); }

  // Written once it is known that there is something to write behind it.
  void key(std::string_view name) override {
    if (skipping_ > 0) return;
    const auto& level = levels_.back();
    next_ = level.rule ? find(*level.rule, name) : Member{};
    name_ = next_.rule && next_.rule->rename ? *next_.rule->rename : name;
  }
  void string(std::string_view text) override {
    if (starts_scalar()) text_.string(text);
  }
  void literal(std::string_view text) override {
    if (starts_scalar()) text_.literal(text);
  }

 private:
  struct Member {
    const Rule* rule = nullptr;  // none: nothing is said of what is below
    bool skip = false;
  };
  struct Level {
    const Rule* rule = nullptr;
    bool array = false;
  };

  static Member find(const Rule& rule, std::string_view name) {
    const auto found = rule.below.find(name);
    if (found == rule.below.end()) return {nullptr, only_kept(rule)};
    const auto& member = found->second;
    const bool kept = !only_kept(rule) || member.keep || member.keeps_below;
    return {&member, member.drop || !kept};
  }
  // What is kept itself is kept with all that is below it.
  static bool only_kept(const Rule& rule) { return rule.keeps_below && !rule.keep; }

  // A value begins where the reader is now: its rule, unless it is skipped or redacted.
  bool starts(Member& member) {
    if (levels_.empty()) {
      member = {&rules_.value, false};
    } else if (levels_.back().array) {
      member = {levels_.back().rule, false};
    } else {
      member = next_;
    }
    return !member.skip;
  }
  void write_key() {
    if (!levels_.empty() && !levels_.back().array) text_.key(name_);
  }
  bool redacts(const Member& member) const {
    return member.rule && member.rule->redact && !levels_.empty() && !levels_.back().array;
  }

  void begin(bool array) {
    if (skipping_ > 0) {
      ++skipping_;
      return;
    }
    Member member;
    if (!starts(member)) {
      skipping_ = 1;
      return;
    }
    write_key();
    if (redacts(member)) {
      text_.string(rules_.redacted);
      skipping_ = 1;
      return;
    }
    if (array) {
      text_.begin_array();
    } else {
      text_.begin_object();
    }
    if (levels_.empty()) has_members_ = true;
    levels_.push_back({member.rule, array});
  }
  void end(bool array) {
    if (skipping_ > 0) {
      --skipping_;
      return;
    }
    if (array) {
      text_.end_array();
    } else {
      text_.end_object();
    }
    levels_.pop_back();
  }
  bool starts_scalar() {
    if (skipping_ > 0) return false;
    Member member;
    if (!starts(member)) return false;
    // It has no member that could be kept.
    if (member.rule && only_kept(*member.rule)) return false;
    write_key();
    if (!redacts(member)) return true;
    text_.string(rules_.redacted);
    return false;
  }

  const Rules& rules_;
  JsonText text_;
  std::vector<Level> levels_;
  Member next_;               // of the key that was read last
  std::string name_;          // under which it is written
  std::size_t skipping_ = 0;  // containers that are skipped, within each other
  bool has_members_ = false;
};

}  // namespace

Result<std::string> apply_rules(const Rules& rules, Bytes value) {
  Rewriter rewriter(rules);
  MR_CHECK(walk_json(value, rewriter));
  if (!rewriter.has_members()) {
    return Error{Errc::invalid_argument, "the value is neither a JSON object nor an array"};
  }
  return rewriter.take();
}
