// millrace produce TOPIC: a message a line from stdin.
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/batch.h>
#include <millrace/kafka/partitioner.h>
#include <millrace/kafka/produce.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/output.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t batch_bytes_max = std::size_t{512} << 10;
constexpr std::int32_t produce_timeout_ms = 30'000;

struct Arguments {
  std::string topic;
  std::int32_t partition = -1;
  std::string key_separator;
  std::vector<std::string> headers;  // "NAME=VALUE"
  std::string acks = "all";
  std::string compression = "none";
  bool null_empty = false;
};

Result<std::int16_t> acks_of(const std::string& text) {
  if (text == "all" || text == "-1") return std::int16_t{-1};
  if (text == "1") return std::int16_t{1};
  return Error{Errc::invalid_argument, "--acks " + in_quotes(text) + ": expected 1 or all"};
}

Result<CompressionId> compression_of(const std::string& text) {
  for (const auto id : {CompressionId::none, CompressionId::gzip, CompressionId::snappy,
                        CompressionId::lz4, CompressionId::zstd}) {
    if (name_of(id) == text) return id;
  }
  return Error{Errc::invalid_argument,
               "--compression " + in_quotes(text) + ": expected none, gzip, snappy, lz4 or zstd"};
}

// Gathers messages by partition and sends each full batch to its leader.
class Producer {
 public:
  Producer(ClusterClient& cluster, TopicInfo topic, std::int16_t acks, CompressionId compression,
           Codecs codecs)
      : cluster_(cluster),
        topic_(std::move(topic)),
        acks_(acks),
        compression_(compression),
        codecs_(codecs) {
    for (std::size_t at = 0; at < topic_.partitions.size(); ++at) builders_.push_back(fresh());
  }

  /// A key decides the partition as Kafka's own producers do; without one, batches take turns.
  std::size_t choose(std::optional<Bytes> key) {
    const auto partitions = static_cast<std::int32_t>(builders_.size());
    if (key) return static_cast<std::size_t>(kafka::partition_of(*key, partitions));
    if (builders_[turn_].bytes() >= batch_bytes_max / 2) turn_ = (turn_ + 1) % builders_.size();
    return turn_;
  }

  Task<> add(std::size_t partition, Timestamp now, std::optional<std::string> key,
             std::optional<std::string> value, const std::vector<HeaderView>& headers) {
    const auto view = [](const std::optional<std::string>& text) {
      return text ? std::optional<Bytes>(as_bytes(*text)) : std::nullopt;
    };
    auto& builder = builders_[partition];
    builder.add(now, view(key), view(value), headers);
    if (builder.bytes() >= batch_bytes_max) MR_CO_CHECK(co_await send(partition));
    co_return {};
  }

  Task<> flush() {
    for (std::size_t at = 0; at < builders_.size(); ++at) {
      if (builders_[at].records() > 0) MR_CO_CHECK(co_await send(at));
    }
    co_return {};
  }

  std::int64_t sent() const noexcept { return sent_; }

 private:
  BatchBuilder fresh() const { return BatchBuilder({.compression = compression_}); }

  Task<> send(std::size_t at) {
    const auto partition = topic_.partitions[at];
    const auto records = builders_[at].records();
    auto builder = std::exchange(builders_[at], fresh());
    MR_CO_TRY(auto batch, std::move(builder).finish(codecs_));
    kafka::ProduceRequest request;
    request.acks = acks_;
    request.timeout_ms = produce_timeout_ms;
    auto& topic = request.topic_data.emplace_back();
    topic.name = topic_.topic.name;
    topic.topic_id = topic_.topic.id;
    auto& data = topic.partition_data.emplace_back();
    data.index = partition.partition;
    data.records = std::move(batch);
    MR_CO_TRY(auto* leader, co_await cluster_.leader_of(partition));
    MR_CO_TRY(const auto answer, co_await leader->call(std::move(request)));
    if (answer.responses.size() != 1 || answer.responses[0].partition_responses.size() != 1) {
      co_return Error{Errc::corrupt, "the broker answered for another partition"};
    }
    const auto& produced = answer.responses[0].partition_responses[0];
    if (const ErrorCode code{produced.error_code}; code != ErrorCode::none) {
      const TopicPartition id{topic_.topic.name, partition.partition};
      co_return error_of(code,
                         to_string(id) + " " + std::string(produced.error_message.value_or("")));
    }
    sent_ += records;
    co_return {};
  }

  ClusterClient& cluster_;
  TopicInfo topic_;
  std::int16_t acks_;
  CompressionId compression_;
  Codecs codecs_;
  std::vector<BatchBuilder> builders_;
  std::size_t turn_ = 0;
  std::int64_t sent_ = 0;
};

// A line as key and value. With --key-separator a line without it has no key.
struct Line {
  std::optional<std::string> key;
  std::optional<std::string> value;
};
Line split(std::string text, const Arguments& arguments) {
  Line line;
  if (!arguments.key_separator.empty()) {
    const auto at = text.find(arguments.key_separator);
    if (at != std::string::npos) {
      line.key = text.substr(0, at);
      text.erase(0, at + arguments.key_separator.size());
    }
  }
  if (!(text.empty() && arguments.null_empty)) line.value = std::move(text);
  return line;
}

Result<std::vector<HeaderView>> headers_of(const Arguments& arguments) {
  std::vector<HeaderView> headers;
  for (const std::string_view header : arguments.headers) {
    const auto equals = header.find('=');
    if (equals == std::string_view::npos) {
      return Error{Errc::invalid_argument,
                   "--header " + in_quotes(header) + ": expected NAME=VALUE"};
    }
    headers.push_back({header.substr(0, equals), as_bytes(header.substr(equals + 1))});
  }
  return headers;
}

Task<> produce(Environment& environment, const Context& context, const Arguments& arguments) {
  MR_CO_TRY(const auto acks, acks_of(arguments.acks));
  MR_CO_TRY(const auto compression, compression_of(arguments.compression));
  MR_CO_TRY(const auto headers, headers_of(arguments));
  MR_CO_TRY(const auto loaded, LoadedCodecs::load(context, environment));
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(auto topic, co_await cluster->topic(arguments.topic));
  const auto partitions = static_cast<std::int32_t>(topic.partitions.size());
  if (arguments.partition >= partitions || arguments.partition < -1) {
    co_return Error{Errc::out_of_range, "--partition " + std::to_string(arguments.partition) +
                                            ": topic " + in_quotes(arguments.topic) +
                                            " has partitions 0 to " +
                                            std::to_string(partitions - 1)};
  }
  Producer producer(*cluster, std::move(topic), acks, compression, loaded.codecs());
  std::string text;
  while (std::getline(std::cin, text)) {
    auto line = split(std::move(text), arguments);
    const auto key = line.key ? std::optional<Bytes>(as_bytes(*line.key)) : std::nullopt;
    const auto at = arguments.partition >= 0 ? static_cast<std::size_t>(arguments.partition)
                                             : producer.choose(key);
    const auto now = environment.clock().wall();
    MR_CO_CHECK(
        co_await producer.add(at, now, std::move(line.key), std::move(line.value), headers));
    text.clear();
  }
  MR_CO_CHECK(co_await producer.flush());
  if (context.output == OutputFormat::json) {
    print_json(boost::json::object{{"topic", arguments.topic}, {"records", producer.sent()}});
  } else {
    std::cerr << "sent " << producer.sent() << " records\n";
  }
  co_return {};
}

}  // namespace

void add_produce_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("produce", "send messages, a line of stdin each");
  const auto wanted = std::make_shared<Arguments>();
  verb->add_option("TOPIC", wanted->topic)->required();
  verb->add_option("--partition", wanted->partition, "default: by key, as Kafka's producers do");
  verb->add_option("--key-separator", wanted->key_separator,
                   "what divides key and value in a line");
  verb->add_option("--header", wanted->headers, "a header of every message")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--acks", wanted->acks, "1 or all")->capture_default_str();
  verb->add_option("--compression", wanted->compression, "none, gzip, snappy, lz4 or zstd")
      ->capture_default_str();
  verb->add_flag("--null-empty", wanted->null_empty, "an empty value is null: a tombstone");
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return produce(environment, context, *wanted); });
    };
  });
}

}  // namespace millrace::kernel::cli
