#include "kernel/cli/datetime.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string_view>

#include "kernel/cli/output.h"

namespace millrace::kernel::cli {

namespace {

/// Takes from the front of a text what is expected there; once something is missing it takes
/// nothing more.
class Words {
 public:
  explicit Words(std::string_view text) : left_(text) {}

  int digits(std::size_t count) {
    int value = 0;
    const auto* begin = left_.begin();
    const auto* end = begin + std::min(count, left_.size());
    const auto [stopped, error] = std::from_chars(begin, end, value);
    good_ = good_ && left_.size() >= count && error == std::errc{} && stopped == end && value >= 0;
    if (good_) left_.remove_prefix(count);
    return good_ ? value : 0;
  }
  void expect(char c) { good_ = accept(c) && good_; }
  bool accept(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  /// What follows a dot, to the millisecond.
  int fraction() {
    int value = 0;
    int taken = 0;
    for (; !left_.empty() && left_.front() >= '0' && left_.front() <= '9'; ++taken) {
      if (taken < 3) value = value * 10 + (left_.front() - '0');
      left_.remove_prefix(1);
    }
    good_ = good_ && taken > 0;
    for (; taken < 3; ++taken) value *= 10;
    return value;
  }
  bool is_done() const { return good_ && left_.empty(); }
  bool is_at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

using std::chrono::milliseconds;

milliseconds zone_of(Words& words) {
  if (words.is_at_end() || words.accept('Z')) return {};
  const bool east = words.accept('+');
  if (!east) words.expect('-');
  const auto hours = words.digits(2);
  words.accept(':');
  const auto ahead = std::chrono::hours(hours) + std::chrono::minutes(words.digits(2));
  return east ? ahead : -ahead;
}

std::optional<milliseconds> parse(std::string_view text) {
  Words words(text);
  const std::chrono::year year(words.digits(4));
  words.expect('-');
  const std::chrono::month month(static_cast<unsigned>(words.digits(2)));
  words.expect('-');
  const std::chrono::day day(static_cast<unsigned>(words.digits(2)));
  const std::chrono::year_month_day date(year, month, day);
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  int fraction = 0;
  milliseconds zone{};
  if (!words.is_at_end()) {
    if (!words.accept(' ')) words.expect('T');
    hours = words.digits(2);
    words.expect(':');
    minutes = words.digits(2);
    if (words.accept(':')) seconds = words.digits(2);
    if (words.accept('.')) fraction = words.fraction();
    zone = zone_of(words);
  }
  if (!words.is_done() || !date.ok() || hours > 23 || minutes > 59 || seconds > 59) {
    return std::nullopt;
  }
  const auto days = std::chrono::sys_days(date).time_since_epoch();
  return days + std::chrono::hours(hours) + std::chrono::minutes(minutes) +
         std::chrono::seconds(seconds) + milliseconds(fraction) - zone;
}

}  // namespace

Result<Timestamp> parse_datetime(const std::string& text) {
  std::optional<milliseconds> time;
  if (text.starts_with('@')) {
    std::int64_t count = -1;
    const auto* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + 1, end, count);
    if (error == std::errc{} && stopped == end) time = milliseconds(count);
  } else {
    time = parse(text);
  }
  if (time && time->count() >= 0) return Timestamp{time->count()};
  return Error{Errc::invalid_argument, in_quotes(text) +
                                           " is no point in time: expected "
                                           "2026-11-29T10:00:00Z, or @MILLISECONDS since 1970"};
}

std::optional<milliseconds> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    milliseconds length;
  };
  // "ms" before "m".
  static constexpr Unit units[] = {
      {"ms", milliseconds(1)},        {"s", std::chrono::seconds(1)},
      {"m", std::chrono::minutes(1)}, {"h", std::chrono::hours(1)},
      {"d", std::chrono::hours(24)},  {"w", std::chrono::hours(24 * 7)},
  };
  if (text.empty()) return std::nullopt;
  milliseconds sum{};
  while (!text.empty()) {
    std::int64_t count = -1;
    const auto [end, failed] = std::from_chars(text.begin(), text.end(), count);
    if (failed != std::errc{} || count < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
    const auto* unit =
        std::ranges::find_if(units, [text](const Unit& one) { return text.starts_with(one.name); });
    if (unit == std::end(units)) return std::nullopt;
    text.remove_prefix(unit->name.size());
    std::int64_t added = 0;
    std::int64_t total = 0;
    if (__builtin_mul_overflow(count, unit->length.count(), &added) ||
        __builtin_add_overflow(sum.count(), added, &total)) {
      return std::nullopt;
    }
    sum = milliseconds(total);
  }
  return sum;
}

Result<Timestamp> parse_moment(const std::string& text, Timestamp now) {
  const auto ago = parse_duration(text);
  if (ago) return Timestamp{std::max<std::int64_t>(now.ms - ago->count(), 0)};
  auto time = parse_datetime(text);
  if (time) return time;
  return Error{time.error().code,
               time.error().detail + ", or how long ago, such as 90s, 15m, 2h, 7d"};
}

std::string datetime_text(Timestamp time) {
  if (time.ms < 0) return "-";
  const std::chrono::sys_time<milliseconds> point{milliseconds(time.ms)};
  const auto day = std::chrono::floor<std::chrono::days>(point);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(point - day);
  char text[40];
  std::snprintf(
      text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

}  // namespace millrace::kernel::cli
