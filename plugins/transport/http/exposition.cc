#include "exposition.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace millrace::http_transport {
namespace {

/// Whole numbers up to here are exact in a double.
constexpr double whole_max = 9007199254740992.0;
/// Below it a number that is not whole is written with an exponent.
constexpr double fixed_min = 1e-6;

void append_number(std::string& text, double value) {
  std::array<char, 32> digits{};
  const auto size = std::abs(value);
  const bool whole =
      size <= whole_max && value == static_cast<double>(static_cast<std::int64_t>(value));
  const bool fixed = size >= fixed_min && size <= whole_max;
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::general;
  const auto end =
      whole ? std::to_chars(digits.begin(), digits.end(), static_cast<std::int64_t>(value))
            : std::to_chars(digits.begin(), digits.end(), value, format);
  text.append(digits.begin(), end.ptr);
}

void append_escaped(std::string& text, std::string_view raw, bool quotes) {
  for (const char c : raw) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) text += '\\';
    text += c;
  }
}

/// `{api="Fetch",le="0.1"}`; nothing when there is no label. `le` is of a histogram's bucket.
void append_labels(std::string& text, const MetricLabels& labels, std::string_view le = {}) {
  if (labels.empty() && le.empty()) return;
  char separator = '{';
  const auto append = [&](std::string_view name, std::string_view value) {
    text += separator;
    text += name;
    text += "=\"";
    append_escaped(text, value, true);
    text += '"';
    separator = ',';
  };
  for (const auto& [name, value] : labels) append(name, value);
  if (!le.empty()) append("le", le);
  text += '}';
}

void append_sample(std::string& text, std::string_view name, std::string_view suffix,
                   const MetricLabels& labels, double value, std::string_view le = {}) {
  text += name;
  text += suffix;
  append_labels(text, labels, le);
  text += ' ';
  append_number(text, value);
  text += '\n';
}

std::string bound_text(std::size_t bucket) {
  if (bucket + 1 == Histogram::buckets) return "+Inf";
  std::string text;
  append_number(text, std::chrono::duration<double>(Histogram::bound(bucket)).count());
  return text;
}

/// Buckets count what is in those before them too.
void append_histogram(std::string& text, std::string_view name, const MetricSample& sample) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < Histogram::buckets; ++at) {
    count += sample.counts[at];
    append_sample(text, name, "_bucket", sample.labels, static_cast<double>(count), bound_text(at));
  }
  append_sample(text, name, "_sum", sample.labels, sample.value);
  append_sample(text, name, "_count", sample.labels, static_cast<double>(count));
}

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::counter: return "counter";
    case MetricType::gauge: return "gauge";
    case MetricType::histogram: break;
  }
  return "histogram";
}

}  // namespace

std::string expose(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const auto& family : families) {
    if (family.samples.empty()) continue;
    text += "# HELP " + family.name + ' ';
    append_escaped(text, family.help, false);
    text += "\n# TYPE " + family.name + ' ';
    text += type_name(family.type);
    text += '\n';
    for (const auto& sample : family.samples) {
      if (family.type == MetricType::histogram) {
        append_histogram(text, family.name, sample);
      } else {
        append_sample(text, family.name, "", sample.labels, sample.value);
      }
    }
  }
  return text;
}

}  // namespace millrace::http_transport
