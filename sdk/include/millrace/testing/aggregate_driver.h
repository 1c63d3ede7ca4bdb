// Runs one aggregate (<millrace/aggregate.h>) without a broker: what the runtime does around it,
// with a log in memory and a clock that the test moves. Everything happens inside the calls below,
// on the caller's thread, so that a test reads from top to bottom:
//
//   AggregateDriver driver(factory);
//   const auto asked = driver.send("alice", "deposit 10");
//   EXPECT_EQ(driver.answer_as<BytesMessage>(asked)->bytes.text(), "ok");
//   driver.advance(30s);                       // timers fire, in order
//   ASSERT_TRUE(driver.reload());              // a new object, from snapshot and log
//
// Ways to fail: the high watermark is held (answers and effects wait), an append fails, the
// leadership is lost, the log's end is lost with it. What the aggregate throws (but in query(),
// which changes nothing) unloads it, and it is loaded again, as in a broker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/aggregate.h>

namespace millrace::testing {

/// The topics that an aggregate sees, as the test says. Ids are made from the order of creation.
class DriverCluster final : public ClusterView {
 public:
  /// Makes the topic, or gives it this number of partitions; no racks. Returns its id.
  Uuid put(const std::string& name, std::int32_t partitions);
  /// The same with the racks of each partition's replicas.
  Uuid put(const std::string& name, std::vector<std::vector<std::string>> racks);
  void remove(std::string_view name);

  std::int64_t version() const noexcept override { return version_; }
  const ClusterTopic* find(std::string_view name) const override;
  const ClusterTopic* find(const Uuid& id) const override;
  std::vector<std::string_view> names() const override;

 private:
  std::map<std::string, ClusterTopic, std::less<>> topics_;
  std::int64_t version_ = 1;
  std::uint64_t ids_ = 0;
};

struct AggregateDriverSettings {
  TopicPartition partition{"events", 0};
  Timestamp wall{1'700'000'000'000};  ///< when the test begins
  std::uint64_t seed = 1;             ///< of the ids that Context::uuid() gives
};

/// Of a record that the aggregate did not emit.
struct RecordProducer {
  std::int64_t id = -1;
  std::int16_t epoch = -1;
  bool transactional = false;
};

/// [one thread]
class AggregateDriver {
 public:
  using Settings = AggregateDriverSettings;

  struct Answer {
    ErrorCode error = ErrorCode::none;
    std::string detail;
    std::unique_ptr<Message> message;  ///< none where there is an error
    MonoTime at;                       ///< when it left
  };

  using Producer = RecordProducer;
  /// What the log holds: an event, or the end of a transaction.
  struct Record {
    Offset offset;
    Timestamp time;
    std::optional<Buffer> key;
    std::optional<Buffer> value;
    Producer producer;
    std::optional<bool> commit;  ///< of an end alone

    std::string_view key_text() const noexcept { return key ? key->text() : std::string_view(); }
    std::string_view value_text() const noexcept {
      return value ? value->text() : std::string_view();
    }
  };
  struct Entry {
    std::string key;
    std::string value;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  /// Loads an object from an empty log. `factory` outlives the driver.
  explicit AggregateDriver(AggregateFactory& factory, Settings settings = {});
  ~AggregateDriver();
  AggregateDriver(AggregateDriver&&) noexcept;
  AggregateDriver& operator=(AggregateDriver&&) noexcept;

  // ---- commands and queries ----

  /// decide(), append, evolve(). Answered NOT_COORDINATOR when nothing is loaded.
  ReplyTo send(std::string_view key, std::unique_ptr<Message> body);
  ReplyTo send(std::string_view key, std::string_view bytes);
  template <class M>
    requires std::is_base_of_v<Message, M>
  ReplyTo send(std::string_view key, M body) {
    return send(key, std::unique_ptr<Message>(std::make_unique<M>(std::move(body))));
  }
  /// The same with nobody who waits.
  void tell(std::string_view key, std::unique_ptr<Message> body);

  /// query(), whose answer waits for the high watermark as those of commands do.
  ReplyTo ask(std::string_view key, const Message& question);
  /// The answer at once, whatever the high watermark says.
  Result<std::unique_ptr<Message>> query(std::string_view key, const Message& question);

  /// nullptr while it waits. Valid as long as the driver.
  const Answer* answer(ReplyTo token) const;
  /// The message, when it is an M; nullptr while it waits, and for an error.
  template <class M>
  const M* answer_as(ReplyTo token) const {
    const auto* found = answer(token);
    return found ? dynamic_cast<const M*>(found->message.get()) : nullptr;
  }
  /// none while it waits, too: ask answer() first.
  ErrorCode error(ReplyTo token) const;
  bool waits(ReplyTo token) const { return answer(token) == nullptr; }
  std::size_t waiting() const noexcept;

  // ---- time ----

  /// Moves both clocks; every timer due by then is called at its time, the earlier first, of two
  /// at one time the one set first. advance({}) calls those that are due now.
  void advance(Duration by);
  /// To the next timer, which is called. False when none is set.
  bool advance_to_timer();
  MonoTime now() const noexcept;
  Timestamp wall() const noexcept;
  /// Sorted by name.
  std::vector<std::string> timers() const;
  /// How long until it is called; none when it is not set.
  std::optional<Duration> timer_in(std::string_view name) const;

  // ---- the log ----

  const std::vector<Record>& log() const noexcept;
  /// The offset that the next event gets.
  Offset end() const noexcept;
  /// Those from `from` on: `const auto before = driver.end(); ...; driver.log_from(before)`.
  std::span<const Record> log_from(Offset from) const;
  /// What is in the log from elsewhere: evolve()d at once, as read, when an object is loaded.
  Result<> write(std::string_view key, std::optional<std::string_view> value,
                 Producer producer = {});
  /// Control record; end_transaction() at once when an object is loaded.
  void end_transaction(std::int64_t producer_id, std::int16_t producer_epoch, bool commit);
  /// What log compaction may do: of each key the last record is kept, offsets stay. Records of
  /// transactions are left alone. `tombstones` false: those go as well.
  void compact(bool tombstones = true);
  /// Drops the records from `from` on: what a leader had that its successor does not. Only while
  /// nothing is loaded.
  void cut(Offset from);

  /// The next `calls` appends fail: their events are lost, their answers are this error. What was
  /// no command is told again a second later.
  void fail_appends(std::size_t calls = 1, ErrorCode error = ErrorCode::coordinator_not_available);

  /// Answers and effects wait from now on; release lets out those that the log's end has passed.
  void hold_high_watermark();
  void move_high_watermark(Offset to);
  void release_high_watermark();
  Offset high_watermark() const noexcept;

  // ---- loading ----

  bool loaded() const noexcept;
  /// The leadership is lost: the object is dropped, with its timers and running effects; those who
  /// wait get NOT_COORDINATOR.
  void unload();
  /// A new object, of the next leader epoch: the latest snapshot, then the records behind it. An
  /// error of restore() or evolve() leaves nothing loaded.
  Result<> load();
  /// Both.
  Result<> reload();
  /// Keeps what snapshot() writes, for the next load.
  Result<> take_snapshot();
  void forget_snapshot();
  /// What snapshot() writes now, sorted by key: two objects with the same state write the same.
  Result<std::vector<Entry>> state() const;
  /// The same of another object, made from the whole log.
  Result<std::vector<Entry>> replayed_state() const;
  /// Why it was last unloaded by a fault of its own: what it threw, or what evolve() refused.
  const std::string& failure() const noexcept;
  std::size_t failures() const noexcept;

  // ---- what it sees and starts ----

  DriverCluster& cluster() noexcept;
  /// Tells the aggregate, after the test has changed cluster().
  void cluster_changed();
  /// "" for those that were not set here; the product gives defaults.
  void set(const std::string& setting, std::string value);

  /// Started, committed, and not finished: by name. Of those with one name the first runs.
  std::vector<std::string> effects() const;
  const Effect* effect(std::string_view name) const;
  /// The running effect's AppendEffect, MarkerEffect or CommandEffect; nullptr when there is none.
  template <class Call>
  const Call* effect_as(std::string_view name) const {
    const auto* found = effect(name);
    return found ? std::get_if<Call>(&found->call) : nullptr;
  }
  /// Its outcome, to effect_done(). The effect must be running.
  void finish_effect(std::string_view name, ErrorCode error = ErrorCode::none,
                     std::string_view detail = {}, Message* answer = nullptr);

  /// The object, for what only it can tell. Not while nothing is loaded.
  PartitionAggregate& aggregate() noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::testing
