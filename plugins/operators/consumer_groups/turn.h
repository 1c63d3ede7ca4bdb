// One call of the coordinator: the runtime's context, and what is handy beside it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/aggregate.h>

#include "messages.h"
#include "records.h"
#include "settings.h"

namespace millrace::consumer_groups {

class Monitor;

struct Turn {
  Context& context;
  const Settings& settings;
  Monitor& monitor;
  std::size_t emitted_bytes = 0;  ///< in this call, which becomes one batch

  MonoTime now() const noexcept { return context.now(); }
  Timestamp wall() const noexcept { return context.wall(); }

  template <class T>
  void answer(ReplyTo to, T value) {
    if (to == ReplyTo::nobody) return;
    context.answer(to, std::make_unique<Reply<T>>(std::move(value)));
  }
  /// A record of __consumer_offsets, in the version of the value that the group's kind writes.
  /// Fails, and emits nothing, when a string is longer than the format has room for.
  template <class Key, class Value>
  Result<> emit(const Key& key, const Value& value, std::int16_t version) {
    MR_TRY(const auto key_bytes, encode_key(key));
    MR_TRY(const auto value_bytes, encode_value(value, version));
    emitted_bytes += key_bytes.size() + value_bytes.size();
    context.emit(key_bytes, value_bytes);
    return {};
  }
  template <class Key>
  Result<> emit_tombstone(const Key& key) {
    MR_TRY(const auto key_bytes, encode_key(key));
    emitted_bytes += key_bytes.size();
    context.emit(key_bytes, std::nullopt);
    return {};
  }
};

/// The one timer of a group's members.
std::string timer_of(std::string_view group);

/// The other way; nothing for another timer.
std::optional<std::string> group_of_timer(std::string_view timer);
/// As Java writes it, and so do the member ids that people are used to.
std::string java_text(const Uuid& id);

}  // namespace millrace::consumer_groups
