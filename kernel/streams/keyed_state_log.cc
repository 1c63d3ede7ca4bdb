#include "kernel/streams/keyed_state_log.h"

#include <array>
#include <cstring>

#include <millrace/bytes.h>

#include "kernel/streams/snapshots.h"

namespace millrace::kernel {

namespace {

constexpr char position_kind = 'p';
constexpr char state_kind = 's';
constexpr char timer_kind = 't';
constexpr std::size_t time_bytes = sizeof(std::int64_t);
constexpr std::size_t position_bytes_without_id = 2 * time_bytes;
constexpr std::size_t position_bytes = position_bytes_without_id + sizeof(Uuid);

void append_uvarint(std::vector<std::byte>& to, std::uint64_t value) {
  std::array<std::byte, varlong_bytes_max> encoded{};
  const auto bytes = store_uvarint(encoded.data(), value);
  to.insert(to.end(), encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(bytes));
}

void append(std::vector<std::byte>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void make_key(std::vector<std::byte>& key, char kind, std::string_view name, Bytes rest) {
  key.clear();
  key.push_back(static_cast<std::byte>(kind));
  append_uvarint(key, name.size());
  append(key, as_bytes(name));
  append(key, rest);
}

std::array<std::byte, position_bytes> position_value(const SourcePosition& position,
                                                     Timestamp stream_time) {
  std::array<std::byte, position_bytes> value{};
  store_be(value.data(), position.next.value);
  store_be(value.data() + time_bytes, stream_time.ms);
  std::memcpy(value.data() + position_bytes_without_id, &position.topic_id, sizeof(Uuid));
  return value;
}

Error corrupt(std::string_view what) { return {Errc::corrupt, std::string(what)}; }

/// Takes `bytes` from the front of `from`; nothing when there are fewer.
std::optional<Bytes> take(Bytes& from, std::uint64_t bytes) {
  if (bytes > from.size()) return std::nullopt;
  const auto taken = from.first(bytes);
  from = from.subspan(bytes);
  return taken;
}
std::optional<Bytes> take_sized(Bytes& from) {
  std::uint64_t bytes = 0;
  const auto prefix = load_uvarint(from, bytes);
  if (prefix == 0) return std::nullopt;
  from = from.subspan(prefix);
  return take(from, bytes);
}

/// Calls each(kind, name, rest, value) for everything that is kept.
template <class F>
void for_each_kept(OperatorChain& chain, const SourcePositions& positions, F each) {
  for (const auto& [topic, position] : positions) {
    each(position_kind, topic, Bytes(), Bytes(position_value(position, chain.stream_time())));
  }
  for (std::size_t at = 0; at < chain.size(); ++at) {
    const auto& name = chain.name_of(at);
    chain.state_of(at).for_each([&](Bytes key, Bytes value) {
      each(state_kind, name, key, value);
      return true;
    });
    chain.timers_of(at).times().for_each([&](Bytes key, Bytes value) {
      each(timer_kind, name, key, value);
      return true;
    });
  }
}

Result<> apply_position(std::string topic, std::optional<Bytes> value, OperatorChain& chain,
                        SourcePositions& positions) {
  if (!value) {
    positions.erase(topic);
    return {};
  }
  if (value->size() != position_bytes && value->size() != position_bytes_without_id) {
    return corrupt("a position that is neither 16 nor 32 bytes");
  }
  SourcePosition position{.next = {load_be<std::int64_t>(value->data())}};
  if (value->size() == position_bytes) {
    std::memcpy(&position.topic_id, value->data() + position_bytes_without_id, sizeof(Uuid));
  }
  positions[std::move(topic)] = position;
  chain.restore_stream_time({load_be<std::int64_t>(value->data() + time_bytes)});
  return {};
}

}  // namespace

Result<> KeyedStateLog::apply(std::optional<Bytes> key, std::optional<Bytes> value,
                              OperatorChain& chain, SourcePositions& positions) {
  if (!key || key->empty()) return corrupt("a record without a key");
  auto rest = *key;
  const auto kind = static_cast<char>(rest.front());
  rest = rest.subspan(1);
  const auto name = take_sized(rest);
  if (!name) return corrupt("a key that ends within a name");
  if (kind == position_kind) {
    return apply_position(std::string(as_text(*name)), value, chain, positions);
  }
  if (kind != state_kind && kind != timer_kind) {
    return corrupt("a key of a kind that this version does not know");
  }
  if (kind == timer_kind && value && value->size() != time_bytes) {
    return corrupt("a timer's time that is not 8 bytes");
  }
  const auto step = chain.find(as_text(*name));
  if (!step) return {};
  if (kind == state_kind) {
    chain.state_of(*step).restore(rest, value);
  } else {
    chain.timers_of(*step).restore(rest, value);
  }
  return {};
}

void KeyedStateLog::add(char kind, std::string_view name, Bytes rest, std::optional<Bytes> value,
                        Timestamp now) {
  make_key(key_, kind, name, rest);
  batch_.add(now, Bytes(key_), value, {});
}

Buffer KeyedStateLog::changes(OperatorChain& chain, const SourcePositions& positions,
                              Timestamp now) {
  for (const auto& [topic, position] : positions) {
    const auto value = position_value(position, chain.stream_time());
    add(position_kind, topic, {}, Bytes(value), now);
  }
  for (std::size_t at = 0; at < chain.size(); ++at) {
    const auto& name = chain.name_of(at);
    chain.state_of(at).take_changes(
        [&](Bytes key, std::optional<Bytes> value) { add(state_kind, name, key, value, now); });
    chain.timers_of(at).times().take_changes(
        [&](Bytes key, std::optional<Bytes> value) { add(timer_kind, name, key, value, now); });
  }
  return batch_.finish({});
}

Buffer KeyedStateLog::snapshot(OperatorChain& chain, const SourcePositions& positions, Offset at) {
  SnapshotFileWriter file;
  std::vector<std::byte> key;
  for_each_kept(chain, positions,
                [&](char kind, std::string_view name, Bytes rest, const Bytes& value) {
                  make_key(key, kind, name, rest);
                  file.put(key, value);
                });
  return std::move(file).finish(at);
}

Result<> KeyedStateLog::restore(Buffer snapshot, Offset at, OperatorChain& chain,
                                SourcePositions& positions) {
  MR_TRY(auto file, SnapshotFileReader::open(std::move(snapshot), at));
  while (const auto entry = file.next()) {
    MR_CHECK(apply(entry->key, entry->value, chain, positions));
  }
  return {};
}

}  // namespace millrace::kernel
