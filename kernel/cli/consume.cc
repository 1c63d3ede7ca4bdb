// millrace consume TOPIC: prints messages by partition; no consumer group is involved.
#include <charconv>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/batch.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/list_offsets.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/output.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

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
};

// "earliest", "latest", "@MILLISECONDS" as ListOffsets knows them; a plain number is an offset.
struct Start {
  std::optional<Offset> offset;
  std::int64_t timestamp = 0;
};
Result<Start> start_of(const std::string& text) {
  if (text == "earliest") return Start{{}, static_cast<std::int64_t>(OffsetSpec::earliest)};
  if (text == "latest") return Start{{}, static_cast<std::int64_t>(OffsetSpec::latest)};
  const bool time = text.starts_with('@');
  std::int64_t number = 0;
  const auto* begin = text.data() + (time ? 1 : 0);
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (error != std::errc{} || at != end || number < 0) {
    return Error{
        Errc::invalid_argument,
        "--from " + in_quotes(text) + ": expected earliest, latest, an offset, or @MILLISECONDS"};
  }
  if (time) return Start{{}, number};
  return Start{Offset{number}, 0};
}

// Keys and values that are not UTF-8 are shown as base16, so that the output stays JSON.
json::value text_of(const std::optional<Bytes>& bytes) {
  if (!bytes) return nullptr;
  boost::system::error_code error;
  const json::string text(as_text(*bytes));
  const auto quoted = json::serialize(text);
  json::parse(quoted, error);  // validates UTF-8
  if (!error) return text;
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const auto byte : *bytes) {
    hex += digits[static_cast<unsigned>(byte) >> 4];
    hex += digits[static_cast<unsigned>(byte) & 15];
  }
  return json::object{{"hex", hex}};
}

class Printer {
 public:
  Printer(const Context& context, const Arguments& arguments)
      : json_(context.output == OutputFormat::json), arguments_(arguments) {}

  bool full() const noexcept { return arguments_.count >= 0 && printed_ >= arguments_.count; }

  void print(std::int32_t partition, const RecordView& record) {
    ++printed_;
    if (!json_) {
      if (arguments_.keys && record.key) std::cout << as_text(*record.key);
      if (arguments_.keys) std::cout << '\t';
      if (record.value) std::cout << as_text(*record.value);
      std::cout << '\n';
      return;
    }
    json::array headers;
    for (const auto& header : record.headers) {
      headers.emplace_back(json::object{{"key", header.key}, {"value", text_of(header.value)}});
    }
    print_json(json::object{{"topic", arguments_.topic},
                            {"partition", partition},
                            {"offset", record.offset.value},
                            {"timestamp", record.timestamp.ms},
                            {"key", text_of(record.key)},
                            {"value", text_of(record.value)},
                            {"headers", std::move(headers)}});
  }

 private:
  bool json_;
  const Arguments& arguments_;
  std::int64_t printed_ = 0;
};

class Consumer {
 public:
  Consumer(ClusterClient& cluster, TopicInfo topic, Codecs codecs, Printer& printer)
      : cluster_(cluster), topic_(std::move(topic)), codecs_(codecs), printer_(printer) {}

  Task<Offset> resolve(PartitionInfo partition, std::int64_t timestamp) {
    kafka::ListOffsetsRequest request;
    request.replica_id = -1;
    auto& topic = request.topics.emplace_back();
    topic.name = topic_.topic.name;
    auto& query = topic.partitions.emplace_back();
    query.partition_index = partition.partition;
    query.timestamp = timestamp;
    MR_CO_TRY(auto* leader, co_await cluster_.leader_of(partition));
    MR_CO_TRY(const auto answer, co_await leader->call(std::move(request)));
    if (answer.topics.size() != 1 || answer.topics[0].partitions.size() != 1) {
      co_return Error{Errc::corrupt, "the broker answered for another partition"};
    }
    const auto& found = answer.topics[0].partitions[0];
    if (const ErrorCode code{found.error_code}; code != ErrorCode::none) {
      co_return error_of(code, id_of(partition));
    }
    co_return Offset{found.offset};
  }

  /// Prints from `from` to the high watermark; where that was, or the next offset to read.
  Task<Offset> read(PartitionInfo partition, Offset from) {
    while (!printer_.full()) {
      MR_CO_TRY(auto answer, co_await fetch(partition, from));
      const auto& fetched = answer.responses[0].partitions[0];
      if (const ErrorCode code{fetched.error_code}; code != ErrorCode::none) {
        co_return error_of(code, id_of(partition) + " at offset " + std::to_string(from.value));
      }
      if (!fetched.records || fetched.records->empty()) break;
      MR_CO_TRY(const auto records, fetched.records->flatten());
      MR_CO_TRY(const auto next, print(partition.partition, records, from));
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

  Task<kafka::FetchResponse> fetch(PartitionInfo partition, Offset from) {
    kafka::FetchRequest request;
    request.replica_id = -1;
    request.max_wait_ms = fetch_wait_ms;
    request.min_bytes = 1;
    request.max_bytes = fetch_bytes_max;
    auto& topic = request.topics.emplace_back();
    topic.topic = topic_.topic.name;
    topic.topic_id = topic_.topic.id;
    auto& wanted = topic.partitions.emplace_back();
    wanted.partition = partition.partition;
    wanted.fetch_offset = from.value;
    wanted.partition_max_bytes = fetch_bytes_max;
    MR_CO_TRY(auto* leader, co_await cluster_.leader_of(partition));
    MR_CO_TRY(auto answer, co_await leader->call(std::move(request)));
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
};

Task<> consume(Environment& environment, const Context& context, const Arguments& arguments) {
  MR_CO_TRY(const auto start, start_of(arguments.from));
  MR_CO_TRY(const auto loaded, LoadedCodecs::load(context, environment));
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(auto topic, co_await cluster->topic(arguments.topic));

  Printer printer(context, arguments);
  Consumer consumer(*cluster, topic, loaded.codecs(), printer);
  struct Position {
    PartitionInfo partition;
    Offset next;
  };
  std::vector<Position> positions;
  for (const auto& partition : topic.partitions) {
    const auto& chosen = arguments.partitions;
    if (!chosen.empty() && std::ranges::find(chosen, partition.partition) == chosen.end()) continue;
    Offset next;
    if (start.offset) {
      next = *start.offset;
    } else {
      MR_CO_TRY(next, co_await consumer.resolve(partition, start.timestamp));
    }
    // A time after the last message has no offset: go on from the end.
    if (next.value < 0) {
      const auto latest = static_cast<std::int64_t>(OffsetSpec::latest);
      MR_CO_TRY(next, co_await consumer.resolve(partition, latest));
    }
    positions.push_back({partition, next});
  }
  for (const auto number : arguments.partitions) {
    const bool known = std::ranges::any_of(
        positions, [&](const Position& one) { return one.partition.partition == number; });
    if (!known) {
      co_return Error{Errc::out_of_range, "--partition " + std::to_string(number) + ": topic " +
                                              in_quotes(arguments.topic) + " has partitions 0 to " +
                                              std::to_string(topic.partitions.size() - 1)};
    }
  }
  do {
    for (auto& position : positions) {
      MR_CO_TRY(position.next, co_await consumer.read(position.partition, position.next));
      std::cout.flush();
    }
  } while (arguments.follow && !printer.full());
  co_return {};
}

}  // namespace

void add_consume_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("consume", "print messages, partition by partition");
  const auto wanted = std::make_shared<Arguments>();
  verb->add_option("TOPIC", wanted->topic)->required();
  verb->add_option("--partition", wanted->partitions, "default: all")->allow_extra_args(false);
  verb->add_option("--from", wanted->from, "earliest, latest, an offset, or @MILLISECONDS")
      ->capture_default_str();
  verb->add_option("--count", wanted->count, "stop after so many messages");
  verb->add_flag("--follow", wanted->follow, "wait for more at the end");
  verb->add_flag("--keys", wanted->keys, "print the key and a tab before each value");
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return consume(environment, context, *wanted); });
    };
  });
}

}  // namespace millrace::kernel::cli
