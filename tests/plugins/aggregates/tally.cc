// How much was added under each key: "add N" is answered with VERSION:SUM. Built several times with
// another VERSION, so that one may take the other's place; and with a fault each, so that it may
// not.
#include <map>

#include <millrace/plugin.h>

#include "words.h"

#ifndef TALLY_VERSION
#error "TALLY_VERSION is set by the build"
#endif
#ifndef TALLY_ID
#define TALLY_ID "org.example.operators.tally"
#endif
#ifndef TALLY_NAME
#define TALLY_NAME "tally"
#endif
#ifndef TALLY_TOPIC
#define TALLY_TOPIC "__tally"
#endif
#ifndef TALLY_READS
#define TALLY_READS 1
#endif
#ifndef TALLY_PROVIDES
#define TALLY_PROVIDES ""
#endif

namespace {

using namespace millrace;
using namespace millrace::examples;

class Tally final : public PartitionAggregate {
 public:
  void decide(Command& command, Context& context) override {
    const auto words = words_of(text_of(command.body));
    if (words.size() != 2 || words[0] != "add") {
      return context.refuse(command.reply_to, ErrorCode::invalid_request, "add N");
    }
    context.emit(as_bytes(command.key), as_bytes(words[1]));
    const auto sum = sum_of(command.key) + std::stoll(words[1]);
    context.answer(command.reply_to, text(std::string(TALLY_VERSION ":") + std::to_string(sum)));
  }
  Result<> evolve(const RecordView& event, const EventInfo&) override {
    if (!TALLY_READS) return Error{Errc::corrupt, "written by a version that nobody knows"};
    sums_[std::string(as_text(*event.key))] += std::stoll(std::string(as_text(*event.value)));
    return {};
  }
  Result<std::unique_ptr<Message>> query(std::string_view key, const Message&) const override {
    return text(std::string(TALLY_VERSION ":") + std::to_string(sum_of(key)));
  }
  Result<> snapshot(SnapshotWriter& out) const override {
    for (const auto& [key, sum] : sums_) out.put(as_bytes(key), as_bytes(std::to_string(sum)));
    return {};
  }
  Result<> restore(SnapshotReader& in) override {
    while (const auto entry = in.next()) {
      sums_[std::string(as_text(entry->key))] = std::stoll(std::string(as_text(entry->value)));
    }
    return {};
  }

 private:
  std::int64_t sum_of(std::string_view key) const {
    const auto found = sums_.find(key);
    return found == sums_.end() ? 0 : found->second;
  }

  std::map<std::string, std::int64_t, std::less<>> sums_;
};

class TallyFactory final : public AggregateFactory {
 public:
  AggregateDeclaration declaration() const override {
    return {.name = TALLY_NAME, .topic = TALLY_TOPIC, .partitions = 3, .settings = {}};
  }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition&) override {
    return std::make_unique<Tally>();
  }
};

class TallyPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host&) override {
    return registrar.add(std::make_unique<TallyFactory>());
  }
};

}  // namespace

MILLRACE_PLUGIN(TallyPlugin, .kind = "operators", .id = TALLY_ID, .version = TALLY_VERSION,
                .summary = "sums by key, for tests", .provides = TALLY_PROVIDES);
