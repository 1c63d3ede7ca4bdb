// Reads Kafka's primitive types from one frame. Nothing here trusts the frame: every length is
// checked against the bytes that are left before it is used. The first field that does not fit is
// remembered and from then on the input counts as empty, so a caller reads all fields in a row and
// asks once, in finish(). The generated `read` functions are the main caller.  [any thread]
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <millrace/bytes.h>
#include <millrace/kafka/message.h>

namespace millrace::kafka {

/// The most memory that the arrays of one message may take once decoded. Empty structs are small on
/// the wire and large in memory; this bounds what a frame of nothing but those can cost.
inline constexpr std::size_t decoded_bytes_max = std::size_t{256} << 20;

class WireReader {
 public:
  explicit WireReader(Buffer frame)
      : frame_(std::move(frame)), at_(frame_.data()), end_(at_ + frame_.size()) {}
  // In the middle of a tagged field a copy would not know where the message ends.
  WireReader(const WireReader&) = delete;
  WireReader& operator=(const WireReader&) = delete;

  /// Selects the compact forms (KIP-482) of what follows.
  void set_flexible(bool flexible) noexcept { flexible_ = flexible; }

  /// `field` is a literal: it is kept for finish().
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  void read(T& value, const char* field) {
    if (left() < sizeof(T)) [[unlikely]]
      return fail(field);
    value = load_be<T>(at_);
    at_ += sizeof(T);
  }
  void read(bool& value, const char* field) {
    std::int8_t byte = 0;
    read(byte, field);
    value = byte != 0;
  }
  void read(double& value, const char* field) {
    std::uint64_t bits = 0;
    read(bits, field);
    value = std::bit_cast<double>(bits);
  }
  void read(Uuid& value, const char* field);
  void read_uvarint(std::uint32_t& value, const char* field) {
    if (at_ == end_ || std::to_integer<unsigned>(*at_) >= 0x80)
      return read_long_uvarint(value, field);
    value = std::to_integer<std::uint32_t>(*at_++);
  }

  /// Strings are views into the frame; bytes and records are slices of it.
  void read(std::string_view& value, const char* field);
  void read(Buffer& value, const char* field);
  void read(Payload& value, const char* field);
  /// Where `nullable` is false, a null is malformed.
  void read(std::optional<std::string_view>& value, const char* field, bool nullable = true);
  void read(std::optional<Buffer>& value, const char* field, bool nullable = true);
  void read(std::optional<Payload>& value, const char* field, bool nullable = true);

  /// An array of integers, uuids or strings.
  template <class T>
  void read(std::vector<T>& values, const char* field) {
    for (auto& value : elements(values, primitive_bytes_min<T>(), field)) read(value, field);
  }
  template <class T>
  void read(std::optional<std::vector<T>>& values, const char* field, bool nullable = true) {
    for (auto& value : elements(values, primitive_bytes_min<T>(), field, nullable)) {
      read(value, field);
    }
  }

  /// Reads the count of an array and makes that many elements, which the caller reads in turn.
  /// `element_bytes_min` is the least that one takes on the wire.
  template <class T>
  std::span<T> elements(std::vector<T>& values, std::size_t element_bytes_min, const char* field) {
    bool null = false;
    const auto count = read_count(element_bytes_min, sizeof(T), field, null);
    if (null) fail(field);
    values.resize(count);
    return values;
  }
  template <class T>
  std::span<T> elements(std::optional<std::vector<T>>& values, std::size_t element_bytes_min,
                        const char* field, bool nullable = true) {
    bool null = false;
    const auto count = read_count(element_bytes_min, sizeof(T), field, null);
    if (null) {
      if (!nullable) fail(field);
      values.reset();
      return {};
    }
    return values.emplace(count);
  }

  /// Whether a nullable struct follows, which is marked differently inside a tagged field.
  bool present(const char* field, bool tagged = false);

  /// The tagged fields at the end of a struct that knows none.
  void keep_tags(UnknownTags& unknown);

  bool ok() const noexcept { return bad_field_ == nullptr; }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  std::size_t position() const noexcept { return static_cast<std::size_t>(at_ - frame_.data()); }
  const Buffer& frame() const noexcept { return frame_; }
  /// What has not been read, as a slice of the frame.
  Buffer rest() const { return ok() ? frame_.slice(position()) : Buffer{}; }

  /// Remembers `field` unless an earlier one failed; nothing can be read after it.
  void fail(const char* field) noexcept;
  /// Errc::corrupt: "truncated or malformed field fetch_offset at byte 17". Bytes that are left
  /// over are not an error, as in Kafka; ask left() where they should be.
  Result<> finish() const;

 private:
  friend class TagReader;

  template <class T>
  std::size_t primitive_bytes_min() const noexcept {
    if constexpr (std::same_as<T, std::string_view>) return flexible_ ? 1 : 2;
    return sizeof(T);
  }
  void read_long_uvarint(std::uint32_t& value, const char* field);
  /// The bytes of a string (`small`) or of bytes; data() == nullptr for null.
  Bytes read_sized(bool small, const char* field);
  std::size_t read_count(std::size_t element_bytes_min, std::size_t element_size, const char* field,
                         bool& null);

  Buffer frame_;
  const std::byte* at_;
  const std::byte* end_;
  std::size_t decoded_bytes_ = 0;
  bool flexible_ = false;
  const char* bad_field_ = nullptr;
  std::size_t bad_at_ = 0;
};

/// The tagged fields at the end of a struct:
///   for (TagReader tags(in); tags.next();) {
///     switch (tags.tag()) {
///       case 0: in.read(out.cluster_id, "cluster_id"); break;
///       default: tags.keep(out.unknown_tags);
///     }
///   }
/// Tags must ascend, and each field must fill its size exactly.
class TagReader {
 public:
  explicit TagReader(WireReader& in) : in_(in) { in_.read_uvarint(left_, "tagged fields"); }
  TagReader(const TagReader&) = delete;
  TagReader& operator=(const TagReader&) = delete;

  bool next();
  std::uint32_t tag() const noexcept { return static_cast<std::uint32_t>(tag_); }
  void keep(UnknownTags& unknown);

 private:
  void close();

  WireReader& in_;
  std::uint32_t left_ = 0;
  std::int64_t tag_ = -1;
  const std::byte* outer_end_ = nullptr;  // not null while a field is open
};

}  // namespace millrace::kafka
