#include <millrace/kafka/message_info.h>

#include <algorithm>

namespace millrace::kafka {

const MessageInfo* find_message(std::string_view name) noexcept {
  const auto messages = message_table();
  const auto name_of = [](const MessageInfo* message) { return message->name; };
  const auto at = std::ranges::lower_bound(messages, name, {}, name_of);
  return at != messages.end() && (*at)->name == name ? *at : nullptr;
}

}  // namespace millrace::kafka
