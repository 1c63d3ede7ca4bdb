// What applications write as an aggregate: entities, each under a key of its own, each the sum of
// its events. EntityAggregate<State> is the adapter over PartitionAggregate
// (<millrace/aggregate.h>); EntityFactory<State> is what a plugin registers:
//
//   struct Account {                                   // one entity; begins as Account{}
//     using Command = std::string;                     // what is said to it
//     using Event = Moved;                             // what has happened to it
//     Result<std::string> decide(const Command&, Decision<Event>&) const;
//     void apply(const Event&);
//     std::int64_t cents = 0;
//   };
//   std::string encode(const Moved&);                  // and back, found by their argument
//   Result<> decode(Bytes from, Moved& into);
//
//   registrar.add(std::make_unique<EntityFactory<Account>>("accounts"));
//
// `decide` looks at the entity and says what happens: it emits events, and answers with bytes, or
// with an Error, and then nothing has happened. `apply` is called with each event once it is in the
// log, and again with all of them, in order, when the entities are loaded. It cannot fail: whatever
// could be wrong is asked by `decide` before.
//
// Versions: an entity's version is the number of its events, 0 before the first. A command that
// carries the header `millrace-expected-version` is refused with INVALID_UPDATE_VERSION, and a
// text that says which version it is, when the entity has another. Every answer carries
// `millrace-version`: that after the command. Two who decide about the same version cannot both
// succeed.
//
// Lifetimes: the entities of one partition of the topic live in memory, with its leader. What
// decide() and apply() get is valid during the call. The plugin's objects live until it is
// unloaded. Threading: one thread per partition; nothing may block, and nothing is locked. Errors:
// of decode(Command): INVALID_REQUEST. Of decode(Event): the log holds what it never may, and the
// partition's entities are not loaded; so decode() must read what earlier versions of the plugin
// have encoded. What decide() throws is answered with UNKNOWN_SERVER_ERROR, and the partition's
// entities are loaded again; apply() must not throw. Snapshots: free when State itself has encode()
// and decode(); without them a load reads all events.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/aggregate.h>
#include <millrace/bytes.h>

namespace millrace {

inline constexpr std::string_view expected_version_header = "millrace-expected-version";
inline constexpr std::string_view version_header = "millrace-version";

/// Text as itself and numbers in decimal, for commands, events and states that are just that.
inline std::string encode(const std::string& text) { return text; }
inline Result<> decode(Bytes from, std::string& into) {
  into = as_text(from);
  return {};
}
inline std::string encode(std::int64_t number) { return std::to_string(number); }
inline Result<> decode(Bytes from, std::int64_t& into) {
  const auto text = as_text(from);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (error == std::errc{} && end == text.data() + text.size()) return {};
  return Error{Errc::invalid_argument, "expected a number, found \"" + std::string(text) + "\""};
}

/// The command as it comes from outside.
inline std::unique_ptr<BytesMessage> entity_command(
    std::string_view command, std::optional<std::int64_t> expected_version = {}) {
  auto message = std::make_unique<BytesMessage>(Buffer::copy_of(command));
  if (expected_version) {
    message->headers.emplace_back(expected_version_header,
                                  Buffer::copy_of(std::to_string(*expected_version)));
  }
  return message;
}

/// Of an answer; none when it has no version, or one that is no number.
inline std::optional<std::int64_t> version_of(const BytesMessage& message,
                                              std::string_view header = version_header) {
  const auto* text = message.find(header);
  if (text == nullptr) return std::nullopt;
  std::int64_t version = 0;
  if (!decode(*text, version)) return std::nullopt;
  return version;
}

/// What decide() may do, and what it may know beside the entity.
template <class Event>
class Decision {
 public:
  Decision(std::string_view key, std::int64_t version, Context& context)
      : key_(key), version_(version), context_(context) {}

  /// Happens when decide() succeeds, all of one call or none.
  void emit(const Event& event) { events_.push_back(encode(event)); }
  std::string_view key() const noexcept { return key_; }
  /// Before the command.
  std::int64_t version() const noexcept { return version_; }
  Timestamp wall() const noexcept { return context_.wall(); }
  Uuid uuid() { return context_.uuid(); }
  const std::vector<std::string>& events() const noexcept { return events_; }

 private:
  std::string_view key_;
  std::int64_t version_;
  Context& context_;
  std::vector<std::string> events_;
};

template <class T>
concept Encodable = requires(const T& value, T& into, Bytes bytes) {
  { encode(value) } -> std::convertible_to<std::string>;
  { decode(bytes, into) } -> std::same_as<Result<>>;
};
template <class T>
concept Decodable = requires(T& into, Bytes bytes) {
  { decode(bytes, into) } -> std::same_as<Result<>>;
};

/// What can be an entity.
template <class S>
concept EntityState =
    std::default_initializable<S> && Decodable<typename S::Command> &&
    Encodable<typename S::Event> &&
    requires(const S& entity, S& changed, const typename S::Command& command,
             const typename S::Event& event, Decision<typename S::Event>& decision) {
      { entity.decide(command, decision) } -> std::same_as<Result<std::string>>;
      changed.apply(event);
    };

/// [partition's shard]
template <EntityState State>
class EntityAggregate final : public PartitionAggregate {
 public:
  using EntityCommand = typename State::Command;
  using Event = typename State::Event;

  void decide(Command& command, Context& context) override {
    const auto* message = dynamic_cast<const BytesMessage*>(&command.body);
    if (message == nullptr) {
      return context.refuse(command.reply_to, ErrorCode::invalid_request,
                            "entities take commands as bytes");
    }
    const auto& entity = find(command.key);
    if (auto refused = check_version(command.key, *message, entity.version)) {
      return context.refuse(command.reply_to, refused->first, std::move(refused->second));
    }
    EntityCommand said{};
    if (auto decoded = decode(message->bytes, said); !decoded) {
      return context.refuse(command.reply_to, ErrorCode::invalid_request, decoded.error().detail);
    }
    Decision<Event> decision(command.key, entity.version, context);
    Result<std::string> decided = entity.state.decide(said, decision);
    if (!decided) {
      return context.refuse(command.reply_to, code_of(decided.error()), decided.error().detail);
    }
    for (const auto& event : decision.events())
      context.emit(as_bytes(command.key), as_bytes(event));
    const auto version = entity.version + static_cast<std::int64_t>(decision.events().size());
    context.answer(command.reply_to, answer_of(*decided, version));
  }

  /// A record without a value ends the entity: it begins anew, with version 0.
  Result<> evolve(const RecordView& event, const EventInfo& /*info*/) override {
    if (!event.key) return Error{Errc::corrupt, "an event without the key of its entity"};
    if (!event.value) {
      const auto found = entities_.find(as_text(*event.key));
      if (found != entities_.end()) entities_.erase(found);
      return {};
    }
    Event happened{};
    MR_CHECK(decode(*event.value, happened));
    auto& entity = entities_[std::string(as_text(*event.key))];
    entity.state.apply(happened);
    ++entity.version;
    return {};
  }

  /// The entity as encode(State) writes it, with its version. Errc::not_found: it has no events.
  Result<std::unique_ptr<Message>> query(std::string_view key,
                                         const Message& /*question*/) const override {
    const auto& entity = find(key);
    if (entity.version == 0) return Error{Errc::not_found, "there is no " + quoted(key)};
    if constexpr (Encodable<State>) {
      return std::unique_ptr<Message>(answer_of(encode(entity.state), entity.version));
    } else {
      return std::unique_ptr<Message>(answer_of({}, entity.version));
    }
  }

  Result<> snapshot(SnapshotWriter& out) const override {
    if constexpr (Encodable<State>) {
      for (const auto& [key, entity] : entities_) {
        std::string value(sizeof entity.version, '\0');
        store_be(reinterpret_cast<std::byte*>(value.data()), entity.version);
        value += encode(entity.state);
        out.put(as_bytes(key), as_bytes(value));
      }
      return {};
    } else {
      return PartitionAggregate::snapshot(out);
    }
  }
  Result<> restore(SnapshotReader& in) override {
    if constexpr (Encodable<State>) {
      while (const auto entry = in.next()) {
        auto& entity = entities_[std::string(as_text(entry->key))];
        if (entry->value.size() < sizeof entity.version) {
          return Error{Errc::corrupt, "the snapshot of " + quoted(as_text(entry->key)) + " is cut"};
        }
        entity.version = load_be<std::int64_t>(entry->value.data());
        MR_CHECK(decode(entry->value.subspan(sizeof entity.version), entity.state));
      }
      return {};
    } else {
      return PartitionAggregate::restore(in);
    }
  }

 private:
  struct Entity {
    State state{};
    std::int64_t version = 0;
  };
  using Refusal = std::optional<std::pair<ErrorCode, std::string>>;

  static std::string quoted(std::string_view key) { return "\"" + std::string(key) + "\""; }

  static ErrorCode code_of(const Error& error) noexcept {
    switch (error.code) {
      case Errc::not_found: return ErrorCode::resource_not_found;
      case Errc::conflict: return ErrorCode::policy_violation;
      default: return error_code_of(error);
    }
  }

  static std::unique_ptr<BytesMessage> answer_of(std::string_view bytes, std::int64_t version) {
    auto message = std::make_unique<BytesMessage>(Buffer::copy_of(bytes));
    message->headers.emplace_back(version_header, Buffer::copy_of(std::to_string(version)));
    return message;
  }

  static Refusal check_version(std::string_view key, const BytesMessage& message,
                               std::int64_t version) {
    const auto* header = message.find(expected_version_header);
    if (header == nullptr) return std::nullopt;
    const auto expected = version_of(message, expected_version_header);
    if (!expected) {
      return {{ErrorCode::invalid_request, std::string(expected_version_header) +
                                               ": expected a number, found " +
                                               quoted(header->text())}};
    }
    if (*expected == version) return std::nullopt;
    return {{ErrorCode::invalid_update_version, quoted(key) + " has version " +
                                                    std::to_string(version) + ", expected " +
                                                    std::to_string(*expected)}};
  }

  const Entity& find(std::string_view key) const {
    const auto found = entities_.find(key);
    return found == entities_.end() ? none_ : found->second;
  }

  std::map<std::string, Entity, std::less<>> entities_;
  const Entity none_{};  // what a key has before its first event
};

/// Entities named `name`, with their events in the topic of that name, which keeps all of them.
template <EntityState State>
class EntityFactory final : public AggregateFactory {
 public:
  explicit EntityFactory(std::string name, std::int32_t partitions = 1)
      : name_(std::move(name)), partitions_(partitions) {}

  AggregateDeclaration declaration() const override {
    AggregateDeclaration declared;
    declared.name = name_;
    declared.topic = name_;
    declared.partitions = partitions_;
    declared.settings = {
        {"cleanup.policy", "delete"}, {"retention.ms", "-1"}, {"retention.bytes", "-1"}};
    return declared;
  }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition& /*partition*/) override {
    return std::make_unique<EntityAggregate<State>>();
  }

 private:
  std::string name_;
  std::int32_t partitions_;
};

}  // namespace millrace
