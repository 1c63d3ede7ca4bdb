// The words that were said about each key, in order. "say WORD" is answered with how many there are
// now; "fail" throws; a question is answered with all of them.
#include <map>
#include <stdexcept>

#include <millrace/plugin.h>

#include "words.h"

namespace {

using namespace millrace;
using namespace millrace::examples;

class Journal final : public PartitionAggregate {
 public:
  void decide(Command& command, Context& context) override {
    const auto words = words_of(text_of(command.body));
    if (words.size() == 2 && words[0] == "say") {
      context.emit(as_bytes(command.key), as_bytes(words[1]));
      const auto now = said_[std::string(command.key)].size() + 1;
      return context.answer(command.reply_to, text(std::to_string(now)));
    }
    if (words.size() == 1 && words[0] == "fail") throw std::runtime_error("told to fail");
    context.refuse(command.reply_to, ErrorCode::invalid_request, "say WORD, or fail");
  }
  Result<> evolve(const RecordView& event, const EventInfo&) override {
    said_[std::string(as_text(*event.key))].emplace_back(as_text(*event.value));
    return {};
  }
  Result<std::unique_ptr<Message>> query(std::string_view key, const Message&) const override {
    const auto found = said_.find(std::string(key));
    return text(found == said_.end() ? "" : joined(found->second));
  }
  Result<> snapshot(SnapshotWriter& out) const override {
    for (const auto& [key, words] : said_) out.put(as_bytes(key), as_bytes(joined(words)));
    return {};
  }
  Result<> restore(SnapshotReader& in) override {
    while (const auto entry = in.next()) {
      said_[std::string(as_text(entry->key))] = words_of(as_text(entry->value));
    }
    return {};
  }

 private:
  static std::string joined(const std::vector<std::string>& words) {
    std::string all;
    for (const auto& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
  }

  std::map<std::string, std::vector<std::string>> said_;
};

class JournalFactory final : public AggregateFactory {
 public:
  AggregateDeclaration declaration() const override {
    return {.name = "journal", .topic = "__journal", .partitions = 2, .settings = {}};
  }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition&) override {
    return std::make_unique<Journal>();
  }
};

class JournalPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host&) override {
    return registrar.add(std::make_unique<JournalFactory>());
  }
};

}  // namespace

MILLRACE_PLUGIN(JournalPlugin, .kind = "operators", .id = "org.example.operators.journal",
                .version = "0.1.0", .summary = "words by key, for tests");
