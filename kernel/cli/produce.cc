// millrace produce TOPIC: a message a line from stdin.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <unistd.h>

#include <millrace/batch.h>
#include <millrace/kafka/partitioner.h>

#include "kernel/cli/batch_sender.h"
#include "kernel/cli/cluster_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/input_lines.h"
#include "kernel/cli/message_format.h"
#include "kernel/cli/message_json.h"
#include "kernel/cli/output.h"
#include "kernel/cli/progress_line.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

constexpr std::size_t batch_bytes_max = std::size_t{512} << 10;

// What is not sent yet goes out when nothing has come for so long, as of somebody who types.
constexpr std::chrono::milliseconds linger(50);

struct Arguments {
  std::string topic;
  std::int32_t partition = -1;
  std::string file = "-";
  std::string separator = "\\n";
  std::optional<std::string> key;
  std::string key_separator;
  std::vector<std::string> headers;  // "NAME=VALUE"
  bool json = false;
  bool whole = false;
  std::string acks = "all";
  std::string compression = "none";
  bool null_empty = false;
};

// How many the broker has acknowledged; asked from another thread when Ctrl-C ends us.
using Acknowledged = std::atomic<std::int64_t>;

// Gathers messages by partition and sends each full batch to its leader.
class Producer {
 public:
  Producer(ClusterClient& cluster, TopicInfo topic, ProducerId self, const Arguments& arguments,
           Codecs codecs, Acknowledged& acknowledged)
      : topic_(std::move(topic)),
        sender_(cluster, topic_, self,
                {.acks = acks_of(arguments.acks),
                 .compression = compression_of(arguments.compression)}),
        codecs_(codecs),
        acknowledged_(acknowledged) {
    for (std::size_t at = 0; at < topic_.partitions.size(); ++at) {
      builders_.push_back(sender_.builder(at));
    }
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  /// A key decides the partition as Kafka's own producers do; without one, batches take turns.
  std::size_t choose(std::optional<Bytes> key) {
    const auto partitions = static_cast<std::int32_t>(builders_.size());
    if (key) return static_cast<std::size_t>(kafka::partition_of(*key, partitions));
    if (builders_[turn_].bytes() >= batch_bytes_max / 2) turn_ = (turn_ + 1) % builders_.size();
    return turn_;
  }

  std::size_t partitions() const noexcept { return builders_.size(); }

  Task<> add(std::size_t partition, Timestamp now, const Message& message) {
    const auto view = [](const std::optional<std::string>& text) {
      return text ? std::optional<Bytes>(as_bytes(*text)) : std::nullopt;
    };
    headers_.clear();
    for (const auto& [name, value] : message.headers) headers_.push_back({name, view(value)});
    auto& builder = builders_[partition];
    builder.add(message.timestamp.value_or(now), view(message.key), view(message.value), headers_);
    if (builder.bytes() >= batch_bytes_max) MR_CO_CHECK(co_await send(partition));
    co_return {};
  }

  Task<> flush() {
    for (std::size_t at = 0; at < builders_.size(); ++at) {
      if (builders_[at].records() > 0) MR_CO_CHECK(co_await send(at));
    }
    co_return {};
  }

 private:
  Task<> send(std::size_t at) {
    const auto records = builders_[at].records();
    MR_CO_TRY(auto batch, sender_.seal(at, builders_[at], codecs_));
    MR_CO_CHECK(co_await sender_.send(at, std::move(batch)));
    acknowledged_ += records;
    co_return {};
  }

  TopicInfo topic_;
  BatchSender sender_;
  Codecs codecs_;
  std::vector<BatchBuilder> builders_;
  std::vector<HeaderView> headers_;
  std::size_t turn_ = 0;
  Acknowledged& acknowledged_;
};

using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

Result<Headers> headers_of(const Arguments& arguments) {
  Headers headers;
  for (const auto& header : arguments.headers) {
    const auto equals = header.find('=');
    if (equals == std::string::npos) {
      return Error{Errc::invalid_argument,
                   "--header " + in_quotes(header) + ": expected NAME=VALUE"};
    }
    headers.emplace_back(header.substr(0, equals), header.substr(equals + 1));
  }
  return headers;
}

// A line as key and value. With --key-separator a line without it has no key.
Message split(std::string text, const Arguments& arguments) {
  Message message;
  message.key = arguments.key;
  if (!arguments.key_separator.empty()) {
    const auto at = text.find(arguments.key_separator);
    if (at != std::string::npos) {
      message.key = text.substr(0, at);
      text.erase(0, at + arguments.key_separator.size());
    }
  }
  if (!(text.empty() && arguments.null_empty)) message.value = std::move(text);
  return message;
}

Result<> check_partition(std::int32_t partition, std::size_t partitions, const std::string& topic) {
  if (partition >= 0 && static_cast<std::size_t>(partition) < partitions) return {};
  return Error{Errc::out_of_range, concat("partition ", partition, ": topic ", in_quotes(topic),
                                          " has partitions 0 to ", partitions - 1)};
}

// Reads messages and gives them to a producer, until there are no more.
class Sending {
 public:
  Sending(const Arguments& arguments, Headers headers, InputLines input, Producer& producer,
          const Clock& clock)
      : arguments_(arguments),
        headers_(std::move(headers)),
        input_(std::move(input)),
        producer_(producer),
        clock_(clock),
        line_(clock, std::chrono::milliseconds(250)),
        // Who types sees what is typed.
        quiet_(::isatty(STDIN_FILENO) == 1 && arguments.file == "-") {}

  Task<> run() {
    while (true) {
      if (!input_.is_ready(linger)) MR_CO_CHECK(co_await producer_.flush());
      MR_CO_TRY(auto line, input_.next());
      if (!line) break;
      ++read_;
      auto message = message_in(*std::move(line));
      if (message) {
        const auto added = co_await add(*message);
        if (!added) message = added.error();
      }
      if (!message) {
        // What stands before it is sent all the same.
        MR_CO_CHECK(co_await producer_.flush());
        co_return message.error();
      }
      show_progress();
    }
    co_return co_await producer_.flush();
  }

  /// How many were read and given to the producer.
  std::int64_t taken() const noexcept { return taken_; }

 private:
  Result<Message> message_in(std::string line) const {
    if (!arguments_.json) return split(std::move(line), arguments_);
    auto message = message_of(line);
    if (message) return message;
    return Error{message.error().code, concat("message ", read_, ": ", message.error().detail)};
  }

  Task<> add(Message& message) {
    for (const auto& header : headers_) message.headers.push_back(header);
    const auto key = message.key ? std::optional<Bytes>(as_bytes(*message.key)) : std::nullopt;
    auto at = producer_.choose(key);
    const auto wanted =
        arguments_.partition >= 0 ? arguments_.partition : message.partition.value_or(-1);
    if (wanted >= 0) {
      MR_CO_CHECK(check_partition(wanted, producer_.partitions(), arguments_.topic));
      at = static_cast<std::size_t>(wanted);
    }
    ++taken_;
    co_return co_await producer_.add(at, clock_.wall(), message);
  }

  void show_progress() {
    if (quiet_ || !line_.due()) return;
    auto text = concat(read_, " messages, ", human_bytes(static_cast<double>(input_.bytes_read())));
    if (const auto total = input_.bytes_total(); total.value_or(0) > 0) {
      text += concat(", ", std::min<std::uint64_t>(input_.bytes_read() * 100 / *total, 100), " %");
    }
    line_.show(text);
  }

  const Arguments& arguments_;
  Headers headers_;
  InputLines input_;
  Producer& producer_;
  const Clock& clock_;
  ProgressLine line_;
  bool quiet_;
  std::int64_t read_ = 0;
  std::int64_t taken_ = 0;
};

Result<std::string> separator_of(std::string_view option, std::string_view text) {
  auto separator = unescaped(text);
  if (separator) return separator;
  return Error{separator.error().code, concat(option, ": ", separator.error().detail)};
}

Task<> produce(Environment& environment, const Context& context, Arguments arguments,
               Acknowledged& acknowledged) {
  MR_CO_TRY(auto headers, headers_of(arguments));
  MR_CO_TRY(auto separator, separator_of("--separator", arguments.separator));
  MR_CO_TRY(arguments.key_separator, separator_of("--key-separator", arguments.key_separator));
  if (arguments.whole) separator.clear();
  MR_CO_TRY(auto input, InputLines::open(arguments.file, std::move(separator)));
  MR_CO_TRY(const auto loaded, LoadedCodecs::load(context, environment));
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(auto topic, co_await cluster->topic(arguments.topic));
  if (arguments.partition >= 0) {
    MR_CO_CHECK(check_partition(arguments.partition, topic.partitions.size(), arguments.topic));
  }
  MR_CO_TRY(const auto self, co_await ask_producer_id(*cluster));
  Producer producer(*cluster, std::move(topic), self, arguments, loaded.codecs(), acknowledged);
  auto sent = Result<>();
  std::int64_t taken = 0;
  {
    Sending sending(arguments, std::move(headers), std::move(input), producer, environment.clock());
    sent = co_await sending.run();
    taken = sending.taken();
  }
  if (!sent) {
    const auto rest = acknowledged < taken ? ", others that were read may be lost" : "";
    const auto count = static_cast<std::uint64_t>(acknowledged.load());
    co_return Error{sent.error().code,
                    concat(sent.error().detail, "; ", counted(count, "message"),
                           count == 1 ? " was" : " were", " acknowledged", rest)};
  }
  if (context.output == OutputFormat::json) {
    print_json(boost::json::object{{"topic", arguments.topic}, {"records", acknowledged.load()}});
  } else {
    std::cerr << "sent " << counted(static_cast<std::uint64_t>(acknowledged.load()), "record")
              << '\n';
  }
  co_return {};
}

void add_message_options(CLI::App& verb, Arguments& wanted) {
  auto* json = verb.add_flag("--json", wanted.json,
                             "each line is a message as millrace -o json consume prints it; all of "
                             "its members may be left out, topic and offset are passed over");
  auto* key = verb.add_option("--key", wanted.key, "the key of every message")->excludes(json);
  verb.add_option("--key-separator", wanted.key_separator,
                  "what divides key and value in a line, such as : or \\t")
      ->check([](const std::string& text) {
        return std::string(text.empty() ? "an empty text divides nothing" : "");
      })
      ->excludes(json)
      ->excludes(key);
  verb.add_option("--header", wanted.headers, "a header of every message; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb.add_flag("--null-empty", wanted.null_empty, "an empty value is null: a tombstone")
      ->excludes(json);
  auto* separator = verb.add_option("--separator", wanted.separator,
                                    "what ends a message; default: a line's end, \\n")
                        ->check([](const std::string& text) {
                          return std::string(text.empty() ? "an empty text ends no message; "
                                                            "--whole makes one of all"
                                                          : "");
                        })
                        ->excludes(json);
  verb.add_flag("--whole", wanted.whole, "stdin, or the file, is one message")
      ->excludes(json)
      ->excludes(separator);
}

}  // namespace

void add_produce_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("produce", "send messages, a line of stdin each");
  const auto wanted = std::make_shared<Arguments>();
  verb->add_option("TOPIC", wanted->topic)->required()->check(topic_name);
  verb->add_option("--file", wanted->file, "read this instead of stdin")
      ->type_name("FILE")
      ->check(not_empty);
  verb->add_option("--partition", wanted->partition, "default: by key, as Kafka's producers do")
      ->check(whole_number<std::int32_t>(0));
  add_message_options(*verb, *wanted);
  verb->add_option("--acks", wanted->acks, "1 or all")
      ->capture_default_str()
      ->check(one_of({"1", "all", "-1"}));
  verb->add_option("--compression", wanted->compression, "none, gzip, snappy, lz4 or zstd")
      ->capture_default_str()
      ->check(one_of({"none", "gzip", "snappy", "lz4", "zstd"}));
  add_examples(*verb, {"echo hello | millrace produce orders",
                       "millrace produce orders --key-separator : --compression zstd < lines",
                       "millrace produce orders --file lines --header source=import",
                       "millrace produce pictures --whole --key cat < cat.png",
                       "millrace -o json consume orders | millrace produce copies --json"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      Acknowledged acknowledged = 0;
      return run(
          [&](Environment& environment) {
            return produce(environment, context, *wanted, acknowledged);
          },
          [&] {
            return concat("millrace: ended by a signal; the broker has acknowledged ",
                          counted(static_cast<std::uint64_t>(acknowledged.load()), "message"),
                          "\n");
          });
    };
  });
}

}  // namespace millrace::kernel::cli
