// millrace consume TOPIC: prints messages by partition; no consumer group is involved.
#include <algorithm>
#include <charconv>
#include <iostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <millrace/batch.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/datetime.h"
#include "kernel/cli/message_format.h"
#include "kernel/cli/message_json.h"
#include "kernel/cli/output.h"
#include "kernel/cli/partition_reader.h"
#include "kernel/cli/progress_line.h"
#include "kernel/cli/standard_output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::int32_t fetch_wait_ms = 500;

struct Arguments {
  std::string topic;
  std::vector<std::int32_t> partitions;
  std::string from = "earliest";
  std::int64_t count = -1;
  bool follow = false;
  bool keys = false;
  bool headers = false;
  std::string format;
};

// Where reading begins: at an offset, at a time or an end as ListOffsets knows them, or so many
// messages before the end.
struct Start {
  std::optional<Offset> offset;
  std::int64_t timestamp = 0;
  std::int64_t before_end = 0;
};

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.begin(), text.end(), number);
  if (failed != std::errc{} || end != text.end()) return std::nullopt;
  return number;
}

Result<Start> start_of(const std::string& text, Timestamp now) {
  if (text == "earliest")
    return Start{.timestamp = static_cast<std::int64_t>(OffsetSpec::earliest)};
  if (text == "latest") return Start{.timestamp = static_cast<std::int64_t>(OffsetSpec::latest)};
  if (const auto number = number_of(text)) {
    if (*number >= 0) return Start{.offset = Offset{*number}};
    if (*number > INT64_MIN) return Start{.before_end = -*number};
  }
  const auto time = parse_moment(text, now);
  if (time) return Start{.timestamp = time->ms};
  return Error{
      Errc::invalid_argument,
      concat("--from ", in_quotes(text), ": expected earliest, latest, an offset, -N for ",
             "the last N of each partition, how long ago (90s, 15m, 2h, 7d), or a time ",
             "(2026-11-29T10:00:00Z, @MILLISECONDS)", nearest_hint(text, {"earliest", "latest"}))};
}

class Printer {
 public:
  Printer(const Context& context, const Arguments& arguments, MessageFormat format)
      : json_(context.output == OutputFormat::json),
        arguments_(arguments),
        format_(std::move(format)) {}

  bool full() const noexcept { return arguments_.count >= 0 && printed_ >= arguments_.count; }
  std::int64_t printed() const noexcept { return printed_; }

  void print(std::int32_t partition, const RecordView& record) {
    ++printed_;
    if (json_) {
      print_json(object_of(arguments_.topic, partition, record));
      return;
    }
    text_.clear();
    auto* output = standard_output();
    if (output == nullptr || !output->is_terminal()) {
      format_.append(text_, arguments_.topic, partition, record);
      std::cout << text_;
      return;
    }
    format_.append_printable(text_, arguments_.topic, partition, record);
    output->add(text_);
  }

 private:
  bool json_;
  const Arguments& arguments_;
  MessageFormat format_;
  std::string text_;
  std::int64_t printed_ = 0;
};

// How far reading has come, where a file is written and somebody looks on.
class ReadProgress {
 public:
  explicit ReadProgress(const Clock& clock)
      : line_(clock, std::chrono::milliseconds(250)),
        wanted_(::isatty(STDERR_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 0) {}

  bool wanted() const noexcept { return wanted_; }
  void add_total(std::int64_t messages) { total_ += messages; }
  void show(std::int64_t messages) {
    if (!wanted_ || !line_.due()) return;
    auto text = std::to_string(messages) + " messages";
    if (total_ > 0)
      text += ", " + std::to_string(std::min<std::int64_t>(messages * 100 / total_, 100)) + " %";
    line_.show(text);
  }

 private:
  ProgressLine line_;
  bool wanted_;
  std::int64_t total_ = 0;  // by their offsets
};

class Consumer {
 public:
  Consumer(ClusterClient& cluster, const TopicInfo& topic, const Codecs& codecs, Printer& printer,
           ReadProgress& progress)
      : cluster_(cluster),
        topic_(topic.topic),
        reader_(cluster, topic.topic, codecs),
        printer_(printer),
        progress_(progress) {}

  /// How long a broker waits for what is not there yet. With many partitions, which are read in
  /// turns, none keeps the others for long.
  void wait_for_more(std::size_t partitions) {
    limits_.wait_ms =
        std::max<std::int32_t>(fetch_wait_ms / static_cast<std::int32_t>(partitions), 20);
  }

  /// Where to begin in a partition.
  Task<Offset> begin(PartitionInfo& partition, Start start) {
    constexpr auto earliest = static_cast<std::int64_t>(OffsetSpec::earliest);
    constexpr auto latest = static_cast<std::int64_t>(OffsetSpec::latest);
    if (start.offset || start.before_end > 0) {
      MR_CO_TRY(const auto first, co_await find_offset(cluster_, topic_, partition, earliest));
      MR_CO_TRY(const auto end, co_await find_offset(cluster_, topic_, partition, latest));
      if (start.offset && first <= *start.offset && *start.offset <= end) co_return *start.offset;
      if (start.offset) {
        co_return Error{
            Errc::out_of_range,
            concat("--from ", start.offset->value, ": ",
                   to_string(TopicPartition{topic_.name, partition.partition}),
                   " begins at offset ", first.value, " and ends at ", end.value,
                   "; --partition chooses others, --from earliest takes what there is")};
      }
      co_return Offset{std::max(first.value, end.value - start.before_end)};
    }
    MR_CO_TRY(const auto found, co_await find_offset(cluster_, topic_, partition, start.timestamp));
    if (found.value >= 0) co_return found;
    // A time after the last message has no offset: go on from the end.
    co_return co_await find_offset(cluster_, topic_, partition, latest);
  }

  /// The offset behind its last message.
  Task<Offset> end(PartitionInfo& partition) {
    constexpr auto latest = static_cast<std::int64_t>(OffsetSpec::latest);
    co_return co_await find_offset(cluster_, topic_, partition, latest);
  }

  /// Prints from where a partition is read to, up to the high watermark.
  Task<ReadPosition> read(ReadPosition position) {
    std::vector<ReadPosition> positions{std::move(position)};
    const auto& at = positions.front();
    while (!printer_.full()) {
      MR_CO_TRY(const auto answer, co_await reader_.fetch(positions, limits_));
      if (answer.responses.empty() || answer.responses[0].partitions.empty()) continue;
      const auto from = at.next;
      MR_CO_CHECK(reader_.open(answer, positions, [this](auto partition, const auto& record) {
        printer_.print(partition, record);
        return !printer_.full();
      }));
      MR_CO_CHECK(check_output());
      progress_.show(printer_.printed());
      const auto end = answer.responses[0].partitions[0].high_watermark;
      if (at.next == from || at.next.value >= end) break;
    }
    co_return std::move(positions.front());
  }

 private:
  ClusterClient& cluster_;
  const TopicName topic_;
  PartitionReader reader_;
  Printer& printer_;
  ReadProgress& progress_;
  FetchLimits limits_{.wait_ms = 0};
};

// Those that are asked for, all unless some are.
Result<std::vector<ReadPosition>> chosen_of(const TopicInfo& topic, const Arguments& arguments) {
  std::vector<ReadPosition> positions;
  for (const auto number : arguments.partitions) {
    const auto found = std::ranges::find(topic.partitions, number, &PartitionInfo::partition);
    if (found != topic.partitions.end()) continue;
    return no_such_partition("--partition", topic, number);
  }
  for (const auto& partition : topic.partitions) {
    const auto& chosen = arguments.partitions;
    if (!chosen.empty() && !contains(chosen, partition.partition)) continue;
    positions.push_back({.partition = partition, .next = {}});
  }
  return positions;
}

Task<> consume(Environment& environment, const Context& context, const Arguments& arguments) {
  MR_CO_TRY(const auto start, start_of(arguments.from, environment.clock().wall()));
  auto format = MessageFormat::lines(arguments.keys, arguments.headers);
  if (!arguments.format.empty()) {
    auto parsed = MessageFormat::parse(arguments.format);
    if (!parsed) co_return Error{parsed.error().code, "--format: " + parsed.error().detail};
    format = *std::move(parsed);
  }
  MR_CO_TRY(const auto loaded, LoadedCodecs::load(context, environment));
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(auto topic, co_await cluster->topic(arguments.topic));

  Printer printer(context, arguments, std::move(format));
  ReadProgress progress(environment.clock());
  Consumer consumer(*cluster, topic, loaded.codecs(), printer, progress);
  MR_CO_TRY(auto positions, chosen_of(topic, arguments));
  for (auto& position : positions) {
    MR_CO_TRY(position.next, co_await consumer.begin(position.partition, start));
    if (!progress.wanted()) continue;
    MR_CO_TRY(const auto end, co_await consumer.end(position.partition));
    progress.add_total(end - position.next);
  }
  if (arguments.follow) consumer.wait_for_more(positions.size());
  do {
    for (auto& position : positions) {
      MR_CO_TRY(position, co_await consumer.read(position));
      std::cout.flush();
      MR_CO_CHECK(check_output());
    }
  } while (arguments.follow && !printer.full());
  co_return {};
}

}  // namespace

void add_consume_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand(
      "consume", "print messages, partition by partition; no consumer group has a part in it");
  const auto wanted = std::make_shared<Arguments>();
  verb->add_option("TOPIC", wanted->topic)->required()->check(topic_name);
  verb->add_option("--partition", wanted->partitions, "default: all; may be repeated")
      ->allow_extra_args(false)
      ->check(whole_number<std::int32_t>(0));
  verb->add_option("--from", wanted->from,
                   "earliest, latest, an offset, -N for the last N of each partition, how long ago "
                   "(90s, 15m, 2h, 7d), or a time (2026-11-29T10:00:00Z, @MILLISECONDS)")
      ->type_name("PLACE")
      ->capture_default_str();
  verb->add_option("--count", wanted->count, "stop after so many messages")
      ->type_name("MESSAGES")
      ->check(whole_number<std::int64_t>(0));
  verb->add_flag("--follow", wanted->follow, "wait for more at the end");
  auto* keys = verb->add_flag("--keys", wanted->keys, "print the key and a tab before each value");
  auto* headers =
      verb->add_flag("--headers", wanted->headers, "print headers and a tab before each message");
  verb->add_option("--format", wanted->format,
                   "how a message is printed, without a line's end of its own: " +
                       std::string(MessageFormat::directives()))
      ->type_name("TEXT")
      ->excludes(keys)
      ->excludes(headers);
  add_examples(*verb,
               {"millrace consume orders --keys", "millrace consume orders --from latest --follow",
                "millrace consume orders --from 2h --count 10",
                "millrace consume orders --partition 0 --from -5",
                "millrace consume orders --format '%p %o %d %k=%s\\n'",
                "millrace -o json consume orders > orders.json"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return consume(environment, context, *wanted); });
    };
  });
}

}  // namespace millrace::kernel::cli
