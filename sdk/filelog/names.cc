#include <millrace/filelog/names.h>

#include <algorithm>

#include <millrace/filelog/text.h>

namespace millrace::filelog {

namespace {

constexpr std::size_t offset_digits = 20;
constexpr std::size_t unique_digits = 32;
constexpr std::size_t folder_name_max = 255;
constexpr std::string_view doomed_suffix = "-delete";
constexpr std::string_view hex_digits = "0123456789abcdef";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string offset_name(Offset offset, std::string_view suffix) {
  const auto digits = std::to_string(offset.value);
  std::string name(offset_digits - std::min(offset_digits, digits.size()), '0');
  name += digits;
  name += suffix;
  return name;
}

std::optional<OffsetFile> parse_offset_name(std::string_view name) {
  if (name.size() <= offset_digits || name[offset_digits] != '.') return std::nullopt;
  const auto digits = name.substr(0, offset_digits);
  if (!std::ranges::all_of(digits, is_digit)) return std::nullopt;
  const auto value = parse_number<std::int64_t>(digits);
  if (!value) return std::nullopt;
  return OffsetFile{Offset{*value}, name.substr(offset_digits)};
}

std::optional<TopicPartition> parse_partition_folder(std::string_view name) {
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  const auto digits = name.substr(dash + 1);
  if (digits.empty() || !std::ranges::all_of(digits, is_digit)) return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  const auto partition = parse_number<std::int32_t>(digits);
  if (!partition) return std::nullopt;
  return TopicPartition{std::string(name.substr(0, dash)), *partition};
}

std::string doomed_folder(const TopicPartition& partition, const Uuid& unique) {
  std::string tail(".");
  for (const auto byte : unique.bytes) {
    tail += hex_digits[byte >> 4];
    tail += hex_digits[byte & 0x0f];
  }
  tail += doomed_suffix;
  return to_string(partition).substr(0, folder_name_max - tail.size()) + tail;
}

bool is_doomed_folder(std::string_view name) {
  if (!name.ends_with(doomed_suffix)) return false;
  name.remove_suffix(doomed_suffix.size());
  if (name.size() <= unique_digits) return false;
  const auto unique = name.substr(name.size() - unique_digits);
  return name[name.size() - unique_digits - 1] == '.' &&
         unique.find_first_not_of(hex_digits) == std::string_view::npos;
}

}  // namespace millrace::filelog
