#include "kernel/cli/doctor_zookeeper_wire.h"

#include <cstdint>

#include <millrace/bytes.h>

namespace millrace::kernel::cli::doctor {

namespace {

constexpr std::int32_t exists = 3;
constexpr std::int32_t close_session = -11;
constexpr std::int32_t no_node = -101;

template <std::integral T>
void put(std::string& to, T value) {
  std::byte bytes[sizeof value];
  store_be(bytes, value);
  to.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

template <std::integral T>
std::optional<T> take(std::string_view& from) {
  if (from.size() < sizeof(T)) return std::nullopt;
  const auto value = load_be<T>(reinterpret_cast<const std::byte*>(from.data()));
  from.remove_prefix(sizeof(T));
  return value;
}

void put_frame(std::string& to, std::string_view frame) {
  put(to, static_cast<std::int32_t>(frame.size()));
  to += frame;
}

std::optional<std::string_view> take_frame(std::string_view& from) {
  const auto bytes = take<std::int32_t>(from);
  if (!bytes || *bytes < 0 || static_cast<std::size_t>(*bytes) > from.size()) return std::nullopt;
  const auto frame = from.substr(0, static_cast<std::size_t>(*bytes));
  from.remove_prefix(frame.size());
  return frame;
}

std::string hello() {
  constexpr std::int32_t version = 0;
  constexpr std::int64_t zxid_seen = 0;
  constexpr std::int32_t timeout_ms = 10'000;
  constexpr std::int64_t new_session = 0;
  constexpr std::int32_t password_bytes = 16;
  constexpr std::int8_t read_only_too = 0;
  std::string frame;
  put(frame, version);
  put(frame, zxid_seen);
  put(frame, timeout_ms);
  put(frame, new_session);
  put(frame, password_bytes);
  frame.append(password_bytes, '\0');
  put(frame, read_only_too);
  return frame;
}

}  // namespace

std::string zookeeper_question(const std::vector<std::string>& paths) {
  constexpr std::int8_t no_watch = 0;
  std::string question;
  put_frame(question, hello());
  std::int32_t number = 0;
  for (const auto& path : paths) {
    std::string frame;
    put(frame, ++number);
    put(frame, exists);
    put(frame, static_cast<std::int32_t>(path.size()));
    frame += path;
    put(frame, no_watch);
    put_frame(question, frame);
  }
  std::string last;
  put(last, ++number);
  put(last, close_session);
  put_frame(question, last);
  return question;
}

std::optional<std::vector<std::optional<bool>>> zookeeper_answer(std::string_view answer,
                                                                 std::size_t paths) {
  auto greeting = take_frame(answer);
  if (!greeting) return std::nullopt;
  const auto version = take<std::int32_t>(*greeting);
  const auto timeout_ms = take<std::int32_t>(*greeting);
  if (!version || !timeout_ms || *timeout_ms <= 0) return std::nullopt;
  std::vector<std::optional<bool>> found(paths);
  while (auto frame = take_frame(answer)) {
    const auto number = take<std::int32_t>(*frame);
    const auto zxid = take<std::int64_t>(*frame);
    const auto error = take<std::int32_t>(*frame);
    if (!number || !zxid || !error || *number < 1) continue;
    const auto at = static_cast<std::size_t>(*number) - 1;
    if (at >= paths) continue;
    if (*error == 0 || *error == no_node) found[at] = *error == 0;
  }
  return found;
}

}  // namespace millrace::kernel::cli::doctor
