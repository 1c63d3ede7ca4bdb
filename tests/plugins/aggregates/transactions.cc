// How transactions end (KIP-98), as a skeleton of their coordinator: a decision that is in the log
// before anybody is told, markers for every partition that takes part, and an answer once all are
// written. A new leader goes on with the markers where the old one was.
//
//   key: the transactional id    "begin PRODUCER_ID EPOCH"   "add TOPIC PARTITION"   "end
//   commit|abort" event: key -> "STATUS PRODUCER_ID EPOCH TOPIC PARTITION TOPIC PARTITION ..."
#include <map>
#include <set>

#include <millrace/plugin.h>

#include "words.h"

namespace {

using namespace millrace;
using namespace millrace::examples;

struct Transaction {
  std::string status = "ongoing";  // then commit or abort, then complete
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
  std::set<TopicPartition> partitions;
};

std::string written(const Transaction& transaction, std::string_view status) {
  std::string text(status);
  text += ' ' + std::to_string(transaction.producer_id) + ' ' +
          std::to_string(transaction.producer_epoch);
  for (const auto& [topic, partition] : transaction.partitions) {
    text += ' ' + topic + ' ' + std::to_string(partition);
  }
  return text;
}

class Coordinator final : public PartitionAggregate {
 public:
  void decide(Command& command, Context& context) override {
    const std::string key(command.key);
    auto words = words_of(text_of(command.body));
    if (words.size() == 3 && words[0] == "begin") return begin(key, words, command, context);
    if (words.size() == 3 && words[0] == "add") return add(key, words, command, context);
    if (words.size() == 2 && words[0] == "end") return end(key, words[1], command, context);
    context.refuse(command.reply_to, ErrorCode::invalid_request, "");
  }

  Result<> evolve(const RecordView& event, const EventInfo&) override {
    const auto words = words_of(as_text(*event.value));
    if (words.size() < 3) return Error{Errc::corrupt, "a transaction without its producer"};
    Transaction transaction{.status = words[0],
                            .producer_id = number_of(words[1]),
                            .producer_epoch = static_cast<std::int16_t>(number_of(words[2])),
                            .partitions = {}};
    for (std::size_t at = 3; at + 1 < words.size(); at += 2) {
      transaction.partitions.insert(
          {words[at], static_cast<std::int32_t>(number_of(words[at + 1]))});
    }
    transactions_[std::string(as_text(*event.key))] = std::move(transaction);
    return {};
  }

  Result<std::unique_ptr<Message>> query(std::string_view key, const Message&) const override {
    const auto found = transactions_.find(std::string(key));
    if (found == transactions_.end()) return text("none");
    return text(found->second.status);
  }

  // What was decided is done, whoever decided it.
  void loaded(Context& context) override {
    for (const auto& [key, transaction] : transactions_) {
      if (is_decided(transaction)) mark(key, transaction, context);
    }
  }

  void effect_done(const EffectOutcome& outcome, Context& context) override {
    const auto words = words_of(outcome.name);
    const auto found = transactions_.find(words[0]);
    auto& left = pending_[words[0]];
    left.erase(std::string(outcome.name));
    if (!left.empty() || found == transactions_.end() || !is_decided(found->second)) return;
    auto ended = found->second;
    ended.partitions.clear();
    context.emit(as_bytes(words[0]), as_bytes(written(ended, "complete")));
    const auto waiting = waiting_.extract(words[0]);
    if (!waiting.empty()) context.answer(waiting.mapped(), text("complete"));
  }

 private:
  static bool is_decided(const Transaction& transaction) {
    return transaction.status == "commit" || transaction.status == "abort";
  }

  void begin(const std::string& key, const std::vector<std::string>& words, Command& command,
             Context& context) {
    const auto found = transactions_.find(key);
    if (found != transactions_.end() && is_decided(found->second)) {
      return context.refuse(command.reply_to, ErrorCode::concurrent_transactions, "");
    }
    const Transaction fresh{.producer_id = number_of(words[1]),
                            .producer_epoch = static_cast<std::int16_t>(number_of(words[2])),
                            .partitions = {}};
    context.emit(as_bytes(key), as_bytes(written(fresh, "ongoing")));
    context.answer(command.reply_to, text("ongoing"));
  }

  void add(const std::string& key, const std::vector<std::string>& words, Command& command,
           Context& context) {
    const auto found = transactions_.find(key);
    if (found == transactions_.end() || found->second.status != "ongoing") {
      return context.refuse(command.reply_to, ErrorCode::invalid_txn_state, "");
    }
    const TopicPartition wanted{words[1], static_cast<std::int32_t>(number_of(words[2]))};
    const auto* topic = context.cluster().find(wanted.topic);
    if (!topic || wanted.partition < 0 || wanted.partition >= topic->partitions()) {
      return context.refuse(command.reply_to, ErrorCode::unknown_topic_or_partition, "");
    }
    auto with = found->second;
    with.partitions.insert(wanted);
    context.emit(as_bytes(key), as_bytes(written(with, "ongoing")));
    context.answer(command.reply_to, text("added"));
  }

  // The answer waits for the last marker. A client that asks again, because the first answer was
  // lost with its leader, waits for the same.
  void end(const std::string& key, const std::string& how, Command& command, Context& context) {
    const auto found = transactions_.find(key);
    if (found == transactions_.end()) {
      return context.refuse(command.reply_to, ErrorCode::invalid_txn_state, "");
    }
    if (found->second.status == "complete")
      return context.answer(command.reply_to, text("complete"));
    const bool again = found->second.status == how;
    if (is_decided(found->second) && !again) {
      return context.refuse(command.reply_to, ErrorCode::invalid_txn_state, "");
    }
    if (again) {
      context.refuse(command.reply_to, ErrorCode::concurrent_transactions, "it is ending");
      return;
    }
    auto decided = found->second;
    decided.status = how;
    context.emit(as_bytes(key), as_bytes(written(decided, how)));
    if (decided.partitions.empty()) {
      context.emit(as_bytes(key), as_bytes(written(decided, "complete")));
      return context.answer(command.reply_to, text("complete"));
    }
    waiting_[key] = command.reply_to;
    mark(key, decided, context);
  }

  void mark(const std::string& key, const Transaction& transaction, Context& context) {
    for (const auto& partition : transaction.partitions) {
      auto name = key + ' ' + to_string(partition);
      pending_[key].insert(name);
      context.start({.name = std::move(name),
                     .call = MarkerEffect{.to = partition,
                                          .producer_id = transaction.producer_id,
                                          .producer_epoch = transaction.producer_epoch,
                                          .commit = transaction.status == "commit",
                                          .coordinator_epoch = context.leader_epoch().value}});
    }
  }

  std::map<std::string, Transaction> transactions_;
  // Volatile: a new leader has the markers written again.
  std::map<std::string, std::set<std::string>> pending_;
  std::map<std::string, ReplyTo> waiting_;
};

class CoordinatorFactory final : public AggregateFactory {
 public:
  AggregateDeclaration declaration() const override {
    return {.name = "transactions",
            .topic = "__transaction_state",
            .partitions = 3,
            .settings = {{"cleanup.policy", "compact"}}};
  }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition&) override {
    return std::make_unique<Coordinator>();
  }
};

class TransactionsPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host&) override {
    return registrar.add(std::make_unique<CoordinatorFactory>());
  }
};

}  // namespace

MILLRACE_PLUGIN(TransactionsPlugin, .kind = "operators", .id = "org.example.operators.transactions",
                .version = "0.1.0", .summary = "how transactions end, for tests");
