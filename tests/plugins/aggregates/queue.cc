// What of a partition its readers share (KIP-932), as a skeleton of a share partition: records are
// handed out under a lock, acknowledged or handed out again; what is acknowledged is in the log.
// Lives with the leader of the partition whose records it hands out; its key is "TOPIC-N".
//
//   "acquire COUNT MEMBER"          answered "FIRST LAST", or "none"
//   "acknowledge FIRST LAST MEMBER" answered "done"
//   event: "done" -> "FIRST LAST"
#include <algorithm>
#include <map>
#include <set>

#include <millrace/plugin.h>

#include "words.h"

namespace {

using namespace millrace;
using namespace millrace::examples;

constexpr Duration lock_time = std::chrono::seconds(30);

class Queue final : public PartitionAggregate {
 public:
  void decide(Command& command, Context& context) override {
    const auto words = words_of(text_of(command.body));
    if (words.size() == 3 && words[0] == "acquire") return acquire(words, command, context);
    if (words.size() == 4 && words[0] == "acknowledge") return acknowledge(words, command, context);
    context.refuse(command.reply_to, ErrorCode::invalid_request, "");
  }

  Result<> evolve(const RecordView& event, const EventInfo&) override {
    const auto words = words_of(as_text(*event.value));
    if (words.size() != 2) return Error{Errc::corrupt, "expected two offsets"};
    for (auto at = number_of(words[0]); at <= number_of(words[1]); ++at) done_.insert(at);
    while (done_.erase(start_) != 0) ++start_;
    return {};
  }
  Result<std::unique_ptr<Message>> query(std::string_view, const Message&) const override {
    return text("start " + std::to_string(start_));
  }

  // Whose lock has run out loses what it had.
  void timer(std::string_view member, Context&) override {
    std::erase_if(acquired_, [member](const auto& one) { return one.second == member; });
  }

 private:
  // The first records that nobody has and nobody has done.
  void acquire(const std::vector<std::string>& words, Command& command, Context& context) {
    auto first = start_;
    while (done_.contains(first) || acquired_.contains(first)) ++first;
    auto last = first;
    const auto count = number_of(words[1]);
    while (last - first < count && !done_.contains(last) && !acquired_.contains(last)) {
      acquired_[last++] = words[2];
    }
    if (last == first) return context.answer(command.reply_to, text("none"));
    context.set_timer(words[2], lock_time);
    context.answer(command.reply_to, text(std::to_string(first) + ' ' + std::to_string(last - 1)));
  }

  void acknowledge(const std::vector<std::string>& words, Command& command, Context& context) {
    const auto first = number_of(words[1]);
    const auto last = number_of(words[2]);
    for (auto at = first; at <= last; ++at) {
      const auto found = acquired_.find(at);
      if (found != acquired_.end() && found->second == words[3]) continue;
      return context.refuse(command.reply_to, ErrorCode::invalid_record_state, "not yours");
    }
    for (auto at = first; at <= last; ++at) acquired_.erase(at);
    context.emit(as_bytes("done"), as_bytes(words[1] + ' ' + words[2]));
    context.answer(command.reply_to, text("done"));
  }

  std::int64_t start_ = 0;       // all before it is done
  std::set<std::int64_t> done_;  // behind it
  // Volatile: with the leader the locks are gone, and records are handed out again.
  std::map<std::int64_t, std::string> acquired_;
};

class QueueFactory final : public AggregateFactory {
 public:
  AggregateDeclaration declaration() const override {
    return {.name = "queues",
            .topic = "__queues",
            .settings = {},
            .placement = Placement::user_partition};
  }
  std::unique_ptr<PartitionAggregate> make(const TopicPartition&) override {
    return std::make_unique<Queue>();
  }
};

class QueuesPlugin final : public Plugin {
 public:
  Result<> start(Registrar& registrar, Host&) override {
    return registrar.add(std::make_unique<QueueFactory>());
  }
};

}  // namespace

MILLRACE_PLUGIN(QueuesPlugin, .kind = "operators", .id = "org.example.operators.queues",
                .version = "0.1.0", .summary = "what readers share, for tests");
