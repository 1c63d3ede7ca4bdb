// millrace consume TOPIC: prints messages by partition; no consumer group is involved.
#include <algorithm>
#include <charconv>
#include <iostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <millrace/batch.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/list_offsets.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/datetime.h"
#include "kernel/cli/message_format.h"
#include "kernel/cli/message_json.h"
#include "kernel/cli/output.h"
#include "kernel/cli/progress_line.h"
#include "kernel/cli/standard_output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::int32_t fetch_bytes_max = 8 << 20;
constexpr std::int32_t fetch_wait_ms = 500;
constexpr std::size_t records_bytes_max = std::size_t{256} << 20;

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
    format_.append(text_, arguments_.topic, partition, record);
    std::cout << text_;
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

ErrorCode code_in_list(const kafka::ListOffsetsResponse& answer) {
  if (answer.topics.empty() || answer.topics[0].partitions.empty()) return ErrorCode::none;
  return ErrorCode{answer.topics[0].partitions[0].error_code};
}

ErrorCode code_of_fetch(const kafka::FetchResponse& answer) {
  if (answer.responses.empty() || answer.responses[0].partitions.empty()) return ErrorCode::none;
  return ErrorCode{answer.responses[0].partitions[0].error_code};
}

class Consumer {
 public:
  Consumer(ClusterClient& cluster, TopicInfo topic, Codecs codecs, Printer& printer,
           ReadProgress& progress)
      : cluster_(cluster),
        topic_(std::move(topic)),
        codecs_(codecs),
        printer_(printer),
        progress_(progress) {}

  /// How long a broker waits for what is not there yet. With many partitions, which are read in
  /// turns, none keeps the others for long.
  void wait_for_more(std::size_t partitions) {
    wait_ms_ = std::max<std::int32_t>(fetch_wait_ms / static_cast<std::int32_t>(partitions), 20);
  }

  /// Where to begin in a partition.
  Task<Offset> begin(PartitionInfo& partition, Start start) {
    constexpr auto earliest = static_cast<std::int64_t>(OffsetSpec::earliest);
    constexpr auto latest = static_cast<std::int64_t>(OffsetSpec::latest);
    if (start.offset) co_return *start.offset;
    if (start.before_end > 0) {
      MR_CO_TRY(const auto first, co_await resolve(partition, earliest));
      MR_CO_TRY(const auto end, co_await resolve(partition, latest));
      co_return Offset{std::max(first.value, end.value - start.before_end)};
    }
    MR_CO_TRY(const auto found, co_await resolve(partition, start.timestamp));
    if (found.value >= 0) co_return found;
    // A time after the last message has no offset: go on from the end.
    co_return co_await resolve(partition, latest);
  }

  /// The offset behind its last message.
  Task<Offset> end(PartitionInfo& partition) {
    co_return co_await resolve(partition, static_cast<std::int64_t>(OffsetSpec::latest));
  }

  /// Prints from `from` to the high watermark; where that was, or the next offset to read.
  Task<Offset> read(PartitionInfo& partition, Offset from) {
    while (!printer_.full()) {
      MR_CO_TRY(auto answer, co_await fetch(partition, from));
      const auto& fetched = answer.responses[0].partitions[0];
      if (const ErrorCode code{fetched.error_code}; code != ErrorCode::none) {
        co_return error_of(code, id_of(partition) + " at offset " + std::to_string(from.value));
      }
      if (!fetched.records || fetched.records->empty()) break;
      MR_CO_TRY(const auto records, fetched.records->flatten());
      MR_CO_TRY(const auto next, print(partition.partition, records, from));
      MR_CO_CHECK(check_output());
      progress_.show(printer_.printed());
      if (next == from) break;
      from = next;
      if (from.value >= fetched.high_watermark) break;
    }
    co_return from;
  }

 private:
  std::string id_of(const PartitionInfo& partition) const {
    return to_string(TopicPartition{topic_.topic.name, partition.partition});
  }

  Task<Offset> resolve(PartitionInfo& partition, std::int64_t timestamp) {
    kafka::ListOffsetsRequest request;
    request.replica_id = -1;
    auto& topic = request.topics.emplace_back();
    topic.name = topic_.topic.name;
    auto& query = topic.partitions.emplace_back();
    query.partition_index = partition.partition;
    query.timestamp = timestamp;
    auto asking =
        cluster_.ask_leader(topic_.topic.name, partition, std::move(request), code_in_list);
    MR_CO_TRY(const auto answer, co_await std::move(asking));
    if (answer.topics.size() != 1 || answer.topics[0].partitions.size() != 1) {
      co_return Error{Errc::corrupt, "the broker answered for another partition"};
    }
    const auto& found = answer.topics[0].partitions[0];
    if (const ErrorCode code{found.error_code}; code != ErrorCode::none) {
      co_return error_of(code, id_of(partition));
    }
    co_return Offset{found.offset};
  }

  Task<kafka::FetchResponse> fetch(PartitionInfo& partition, Offset from) {
    kafka::FetchRequest request;
    request.replica_id = -1;
    request.max_wait_ms = wait_ms_;
    request.min_bytes = 1;
    request.max_bytes = fetch_bytes_max;
    auto& topic = request.topics.emplace_back();
    topic.topic = topic_.topic.name;
    topic.topic_id = topic_.topic.id;
    auto& wanted = topic.partitions.emplace_back();
    wanted.partition = partition.partition;
    wanted.fetch_offset = from.value;
    wanted.partition_max_bytes = fetch_bytes_max;
    auto asking =
        cluster_.ask_leader(topic_.topic.name, partition, std::move(request), code_of_fetch);
    MR_CO_TRY(auto answer, co_await std::move(asking));
    if (const ErrorCode code{answer.error_code}; code != ErrorCode::none) {
      co_return error_of(code, id_of(partition));
    }
    if (answer.responses.size() != 1 || answer.responses[0].partitions.size() != 1) {
      co_return Error{Errc::corrupt, "the broker answered for another partition"};
    }
    co_return std::move(answer);
  }

  // Answers where to go on. The last batch may be cut short; the next fetch brings it whole.
  Result<Offset> print(std::int32_t partition, const Buffer& records, Offset from) {
    auto next = from;
    std::size_t at = 0;
    while (at < records.size() && !printer_.full()) {
      const auto rest = records.slice(at);
      const auto head = read_entry_head(rest);
      if (!head) {
        if (head.error().code == Errc::out_of_range) break;
        return head.error();
      }
      const auto batch = rest.slice(0, head->total_bytes);
      at += head->total_bytes;
      MR_TRY(const auto header, read_batch_header(batch));
      next = header.last_offset() + 1;
      if (header.control()) continue;
      MR_TRY(const auto section, open_records(header, batch, codecs_, records_bytes_max));
      MR_CHECK(for_each_record(header, section, [&](const RecordView& record) {
        if (record.offset >= from) printer_.print(partition, record);
        if (printer_.full()) next = record.offset + 1;
        return !printer_.full();
      }));
    }
    return next;
  }

  ClusterClient& cluster_;
  TopicInfo topic_;
  Codecs codecs_;
  Printer& printer_;
  ReadProgress& progress_;
  std::int32_t wait_ms_ = 0;
};

struct Position {
  PartitionInfo partition;
  Offset next;
};

// Those that are asked for, all unless some are.
Result<std::vector<Position>> chosen_of(const TopicInfo& topic, const Arguments& arguments) {
  std::vector<Position> positions;
  for (const auto number : arguments.partitions) {
    const auto found = std::ranges::find(topic.partitions, number, &PartitionInfo::partition);
    if (found != topic.partitions.end()) continue;
    return Error{Errc::out_of_range, "--partition " + std::to_string(number) + ": topic " +
                                         in_quotes(arguments.topic) + " has partitions 0 to " +
                                         std::to_string(topic.partitions.size() - 1)};
  }
  for (const auto& partition : topic.partitions) {
    const auto& chosen = arguments.partitions;
    if (!chosen.empty() && !contains(chosen, partition.partition)) continue;
    positions.push_back({partition, {}});
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
      MR_CO_TRY(position.next, co_await consumer.read(position.partition, position.next));
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
