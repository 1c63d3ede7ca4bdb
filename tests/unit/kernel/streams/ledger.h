// An aggregate for tests: texts by key, and whatever a command says is to be done with them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/aggregate.h>

namespace millrace::kernel {

class Ledger;

/// What is done is said by the test.
class Ask final : public Message {
 public:
  explicit Ask(std::function<void(Ledger&, Command&, Context&)> what) : body(std::move(what)) {}
  std::function<void(Ledger&, Command&, Context&)> body;
};
class Text final : public Message {
 public:
  explicit Text(std::string what) : text(std::move(what)) {}
  std::string text;
};

/// What a test says and sees of all its ledgers; outlives them.
struct LedgerScript {
  std::function<void(Ledger&, Context&)> loaded = [](Ledger&, Context&) {};
  std::function<void(Ledger&, std::string_view, Context&)> timer;
  std::function<void(Ledger&, const EffectOutcome&, Context&)> effect_done;
  std::function<void(Ledger&, Context&)> cluster_changed;
  std::function<Result<>(const RecordView&)> before_evolve;
  bool snapshots = true;

  int loads = 0;     // objects made
  int replayed = 0;  // events that came from the log
  int restored = 0;  // snapshots read
  int snapshots_made = 0;
  std::vector<std::string> ended;  // transactions: "7/0 commit"
};

class Ledger final : public PartitionAggregate {
 public:
  explicit Ledger(LedgerScript& script) : script_(script) { ++script_.loads; }

  void decide(Command& command, Context& context) override {
    static_cast<Ask&>(command.body).body(*this, command, context);
  }
  Result<> evolve(const RecordView& event, const EventInfo& info) override {
    if (script_.before_evolve) MR_CHECK(script_.before_evolve(event));
    if (info.replay) ++script_.replayed;
    const std::string key(as_text(*event.key));
    if (event.value) {
      texts[key] = as_text(*event.value);
    } else {
      texts.erase(key);
    }
    ++events;
    return {};
  }
  void end_transaction(std::int64_t id, std::int16_t epoch, bool commit,
                       const EventInfo&) override {
    script_.ended.push_back(std::to_string(id) + '/' + std::to_string(epoch) +
                            (commit ? " commit" : " abort"));
  }
  Result<std::unique_ptr<Message>> query(std::string_view key, const Message&) const override {
    const auto found = texts.find(std::string(key));
    if (found == texts.end()) return Error{Errc::not_found, "nothing under this key"};
    return std::make_unique<Text>(found->second);
  }
  void loaded(Context& context) override { script_.loaded(*this, context); }
  void timer(std::string_view name, Context& context) override {
    if (script_.timer) script_.timer(*this, name, context);
  }
  void effect_done(const EffectOutcome& outcome, Context& context) override {
    if (script_.effect_done) script_.effect_done(*this, outcome, context);
  }
  void cluster_changed(Context& context) override {
    if (script_.cluster_changed) script_.cluster_changed(*this, context);
  }
  Result<> snapshot(SnapshotWriter& out) const override {
    if (!script_.snapshots) return Error{Errc::unsupported, "none"};
    ++script_.snapshots_made;
    for (const auto& [key, text] : texts) out.put(as_bytes(key), as_bytes(text));
    return {};
  }
  Result<> restore(SnapshotReader& in) override {
    ++script_.restored;
    while (const auto entry = in.next()) {
      texts[std::string(as_text(entry->key))] = as_text(entry->value);
    }
    return {};
  }

  std::map<std::string, std::string> texts;
  int events = 0;
  std::vector<ReplyTo> waiting;  // volatile

 private:
  LedgerScript& script_;
};

class LedgerFactory final : public AggregateFactory {
 public:
  LedgerFactory(LedgerScript& script, AggregateDeclaration declared)
      : script_(script), declared_(std::move(declared)) {}
  AggregateDeclaration declaration() const override { return declared_; }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition&) override {
    return std::make_unique<Ledger>(script_);
  }

 private:
  LedgerScript& script_;
  AggregateDeclaration declared_;
};

}  // namespace millrace::kernel
