// Every message by name, for tools that learn only at run time what they look at.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <millrace/kafka/codec.h>

namespace millrace::kafka {

/// As a schema says it: requests and responses of an API, keys and values of a coordinator's log,
/// records of a metadata log, headers, and structs in other places.
enum class MessageKind : std::uint8_t { request, response, key, value, record, header, data };

struct MessageInfo {
  std::string_view name;  ///< "FetchRequest", "OffsetCommitValue"
  MessageKind kind;
  std::int16_t number;  ///< the API's, key's or record's; -1 for the other kinds
  VersionRange versions;
  std::int16_t flexible_from;  ///< INT16_MAX: none is
  /// Decodes `body`, and then: nothing; prints it; encodes it again.
  Result<> (*check)(Buffer body, std::int16_t version);
  Result<std::string> (*to_json)(Buffer body, std::int16_t version);
  Result<Payload> (*recode)(Buffer body, std::int16_t version);
};

/// In order of names.
std::span<const MessageInfo* const> message_table() noexcept;
/// nullptr when there is none.
const MessageInfo* find_message(std::string_view name) noexcept;

/// For the generated table.
template <class Message>
constexpr MessageInfo make_message_info(MessageKind kind, std::int16_t number,
                                        std::int16_t flexible_from) {
  return {
      .name = Message::message_name,
      .kind = kind,
      .number = number,
      .versions = Message::message_versions,
      .flexible_from = flexible_from,
      .check = [](Buffer body, std::int16_t version) -> Result<> {
        MR_CHECK(decode<Message>(std::move(body), version));
        return {};
      },
      .to_json = [](Buffer body, std::int16_t version) -> Result<std::string> {
        MR_TRY(const Message message, decode<Message>(std::move(body), version));
        return to_json(message, version);
      },
      .recode = [](Buffer body, std::int16_t version) -> Result<Payload> {
        MR_TRY(const Message message, decode<Message>(std::move(body), version));
        return encode(message, version);
      },
  };
}

}  // namespace millrace::kafka
