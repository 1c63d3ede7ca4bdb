#include <millrace/filelog/checkpoint_text.h>

#include <algorithm>
#include <array>

#include <millrace/filelog/text.h>

namespace millrace::filelog {

namespace {

constexpr std::array<std::string_view, 4> file_names{
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
};

// Takes the next line off the front of `text`.
std::string_view take_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<PartitionOffset> parse_line(std::string_view line) {
  const auto second = line.rfind(' ');
  if (second == std::string_view::npos || second == 0) return std::nullopt;
  const auto first = line.rfind(' ', second - 1);
  if (first == std::string_view::npos || first == 0) return std::nullopt;
  const auto partition = parse_number<std::int32_t>(line.substr(first + 1, second - first - 1));
  const auto offset = parse_number<std::int64_t>(line.substr(second + 1));
  if (!partition || !offset) return std::nullopt;
  return PartitionOffset{{std::string(line.substr(0, first)), *partition}, {*offset}};
}

}  // namespace

std::string_view checkpoint_file(CheckpointKind kind) noexcept {
  return file_names[static_cast<std::size_t>(kind)];
}

std::string write_checkpoint(const std::map<TopicPartition, Offset>& offsets) {
  auto text = say("0\n", offsets.size(), "\n");
  for (const auto& [partition, offset] : offsets) {
    text += say(partition.topic, " ", partition.partition, " ", offset.value, "\n");
  }
  return text;
}

Result<std::map<TopicPartition, Offset>> read_checkpoint(std::string_view text,
                                                         const std::string& path) {
  if (const auto version = take_line(text); version != "0") {
    const bool later = parse_number<std::uint32_t>(version).has_value();
    return Error{later ? Errc::incompatible : Errc::corrupt,
                 say(path, ": line 1: expected version 0",
                     later ? say(", found ", version,
                                 "; start the version of the broker that has written it")
                           : "")};
  }
  const auto count = parse_number<std::size_t>(take_line(text));
  if (!count) return Error{Errc::corrupt, path + ": line 2: expected the number of lines"};
  std::map<TopicPartition, Offset> offsets;
  for (std::size_t at = 0; at < *count; ++at) {
    const auto line = take_line(text);
    auto parsed = parse_line(line);
    if (!parsed) {
      return Error{Errc::corrupt, say(path, ": line ", at + 3,
                                      ": expected 'topic partition offset', found '", line, "'")};
    }
    offsets[std::move(parsed->partition)] = parsed->offset;
  }
  return offsets;
}

}  // namespace millrace::filelog
