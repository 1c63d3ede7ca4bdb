// A part of a record by its name:
//
//   key                        the record's key
//   value                      its value, whole
//   value.customer.id          of a value that is JSON: a member of an object; of an array the
//   value.items.0              element of that number, from 0
//   value."a.b"                a name that contains a dot
//   header.NAME                the last header of that name, which may contain dots
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/record.h>
#include <millrace/result.h>

namespace millrace {

/// [any thread]
class Field {
 public:
  enum class Part : std::uint8_t { key, value, json, header };

  /// Errc::invalid_argument says what a name looks like.
  static Result<Field> parse(std::string_view name);

  Part part() const noexcept { return part_; }
  /// Of `json`: the names on the way.
  const std::vector<std::string>& path() const noexcept { return path_; }
  /// Of `header`.
  const std::string& header() const noexcept { return header_; }
  /// As parse() took it.
  const std::string& name() const noexcept { return name_; }

  /// The text of that part: of JSON strings what they say, of numbers, true, false and null what
  /// stands there, of objects and arrays their JSON. None when the record has no such part. A view
  /// of the record, or of `scratch`. Errc::corrupt: the value is not JSON.
  Result<std::optional<std::string_view>> read(const RecordView& record,
                                               std::string& scratch) const;

 private:
  Part part_ = Part::key;
  std::vector<std::string> path_;
  std::string header_;
  std::string name_;
};

}  // namespace millrace
