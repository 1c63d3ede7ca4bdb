// Writes Kafka's primitive types. Small fields are gathered in one block; large bytes and records
// are spliced in between as they are, so file ranges in an answer reach the socket uncopied. The
// first field that cannot be written is remembered; finish() returns it.  [any thread]
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <millrace/bytes.h>
#include <millrace/kafka/message.h>

namespace millrace::kafka {

/// Bytes and records of at least this size are shared, smaller ones are copied: below it a part of
/// its own costs more than the copy.
inline constexpr std::size_t splice_bytes_min = 2048;

class WireWriter {
 public:
  explicit WireWriter(std::size_t capacity = 512);
  WireWriter(const WireWriter&) = delete;
  WireWriter& operator=(const WireWriter&) = delete;

  /// Selects the compact forms (KIP-482) of what follows.
  void set_flexible(bool flexible) noexcept { flexible_ = flexible; }

  /// `field` is a literal: it is kept for finish().
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  void write(T value) {
    store_be(room(sizeof(T)), value);
    at_ += sizeof(T);
  }
  void write(bool value) { write(static_cast<std::int8_t>(value)); }
  void write(double value) { write(std::bit_cast<std::uint64_t>(value)); }
  void write(const Uuid& value);
  void write_uvarint(std::uint32_t value) { at_ += store_uvarint(room(varint_bytes_max), value); }

  void write(std::string_view value, const char* field);
  void write(const Buffer& value, const char* field);
  void write(const Payload& value, const char* field);
  /// Where `nullable` is false, a null cannot be written.
  void write(const std::optional<std::string_view>& value, const char* field, bool nullable = true);
  void write(const std::optional<Buffer>& value, const char* field, bool nullable = true);
  void write(const std::optional<Payload>& value, const char* field, bool nullable = true);

  /// An array of integers, uuids or strings.
  template <class T>
  void write(const std::vector<T>& values, const char* field) {
    begin_array(values, field);
    for (const auto& value : values) {
      if constexpr (std::same_as<T, std::string_view>) {
        write(value, field);
      } else {
        write(value);
      }
    }
  }
  template <class T>
  void write(const std::optional<std::vector<T>>& values, const char* field, bool nullable = true) {
    if (values) {
      write(*values, field);
    } else {
      write_null_array(field, nullable);
    }
  }

  /// Writes the count; the caller writes the elements. Returns whether there are any.
  template <class T>
  void begin_array(const std::vector<T>& values, const char* field) {
    write_count(values.size(), field);
  }
  template <class T>
  bool begin_array(const std::optional<std::vector<T>>& values, const char* field,
                   bool nullable = true) {
    if (!values) {
      write_null_array(field, nullable);
      return false;
    }
    write_count(values->size(), field);
    return true;
  }

  /// The mark before a nullable struct, which differs inside a tagged field.
  void write_present(bool present, bool tagged = false) {
    write(static_cast<std::int8_t>(present ? 1 : tagged ? 0 : -1));
  }

  /// The tagged fields of a struct that knows none itself.
  void write_tags(const UnknownTags& unknown);

  /// `field` has a value that matters, and the version being written has no place for it.
  void fail_unsupported(const char* field) noexcept { fail(Errc::unsupported, field); }

  std::size_t size() const noexcept { return block_.size() + gathered() + spliced_bytes_; }

  /// All that was written; the writer is empty then. Errc::unsupported or Errc::invalid_argument
  /// names the field that could not be.
  Result<Payload> finish() &&;
  /// The same with the size of what follows stored into the four bytes at the front, which the
  /// caller wrote as a placeholder.
  Result<Payload> finish_frame() &&;

 private:
  friend class TagWriter;

  struct Splice {
    std::size_t at;  // in the block
    Payload payload;
  };

  std::size_t gathered() const noexcept { return static_cast<std::size_t>(at_ - open_); }
  /// The place for `bytes` more.
  std::byte* room(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) [[unlikely]]
      grow(bytes);
    return at_;
  }
  void grow(std::size_t bytes);
  /// Counts what was written into the block as filled.
  void settle();
  void append(Bytes bytes);
  void write_size(std::size_t size, bool small);
  void write_count(std::size_t count, const char* field);
  void write_null_array(const char* field, bool nullable);
  /// Replaces the one byte at `at` by `value`, moving what follows when it needs more.
  void patch_uvarint(std::size_t at, std::uint32_t value);
  void fail(Errc code, const char* field) noexcept;

  MutableBuffer block_;
  std::byte* open_;  // from here to at_ is written but not yet counted in the block
  std::byte* at_;
  std::byte* end_;
  std::vector<Splice> splices_;
  std::size_t spliced_bytes_ = 0;
  bool flexible_ = false;
  unsigned open_tags_ = 0;
  Errc bad_code_ = Errc::ok;
  const char* bad_field_ = nullptr;
};

/// The tagged fields at the end of a struct, known ones in ascending order:
///   TagWriter tags(out, in.unknown_tags);
///   if (in.cluster_id) {
///     tags.begin(0);
///     out.write(in.cluster_id, "cluster_id");
///     tags.end();
///   }
///   tags.finish();
class TagWriter {
 public:
  TagWriter(WireWriter& out, const UnknownTags& unknown);
  TagWriter(WireWriter& out, UnknownTags&& unknown) = delete;  // would not live long enough
  TagWriter(const TagWriter&) = delete;
  TagWriter& operator=(const TagWriter&) = delete;

  void begin(std::uint32_t tag);
  void end();
  void finish();

 private:
  void write_unknown_below(std::uint64_t tag);

  WireWriter& out_;
  const UnknownTags& unknown_;
  std::size_t next_unknown_ = 0;
  std::uint32_t count_ = 0;
  std::size_t count_at_;
  std::size_t size_at_ = 0;
};

}  // namespace millrace::kafka
