#include "meta_properties.h"

#include <algorithm>

#include <millrace/filelog/text.h>

namespace millrace::filelog {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\f";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// Java's properties, as far as this file needs them: no escapes, no continued lines.
Result<> take_property(std::string_view line, const std::string& where, DirectoryOwner& owner) {
  const auto equals = line.find_first_of("=:");
  if (equals == std::string_view::npos) {
    return Error{Errc::corrupt, say(where, ": expected 'name=value', found '", line, "'")};
  }
  const auto name = trimmed(line.substr(0, equals));
  const auto value = trimmed(line.substr(equals + 1));
  if (name == "cluster.id") owner.cluster_id = value;
  if (name == "broker.id" || name == "node.id") {
    const auto id = parse_number<std::int32_t>(value);
    if (!id) return Error{Errc::corrupt, say(where, ": ", name, " is '", value, "', no number")};
    owner.broker_id = *id;
  }
  if (name == "version" && value != "0" && value != "1") {
    const bool later = parse_number<std::uint32_t>(value).has_value();
    return Error{later ? Errc::incompatible : Errc::corrupt,
                 say(where, ": version is '", value, "', expected 0 or 1",
                     later ? "; start the version of the broker that has written it" : "")};
  }
  return {};
}

}  // namespace

Result<DirectoryOwner> read_meta_properties(std::string_view text, const std::string& path) {
  DirectoryOwner owner;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.front() == '!') continue;
    MR_CHECK(take_property(line, say(path, ": line ", number), owner));
  }
  return owner;
}

std::string write_meta_properties(const DirectoryOwner& owner, const Uuid& directory) {
  return say("#\ncluster.id=", owner.cluster_id, "\ndirectory.id=", to_string(directory),
             "\nnode.id=", owner.broker_id, "\nversion=1\n");
}

}  // namespace millrace::filelog
