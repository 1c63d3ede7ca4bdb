// millrace log: what brokers keep on their disks. `dirs` asks them; the other verbs look at files.
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/kafka/describe_log_dirs.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/context.h"
#include "kernel/cli/log_verbs.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

using LogDir = kafka::DescribeLogDirsResponse::Result;

struct Total {
  std::size_t partitions = 0;
  std::int64_t bytes = 0;
};

Total total_of(const LogDir& dir) {
  Total total;
  for (const auto& topic : dir.topics) {
    total.partitions += topic.partitions.size();
    for (const auto& partition : topic.partitions) total.bytes += partition.partition_size;
  }
  return total;
}

json::object describe(std::int32_t broker, const LogDir& dir) {
  json::array partitions;
  for (const auto& topic : dir.topics) {
    for (const auto& partition : topic.partitions) {
      partitions.emplace_back(json::object{{"topic", topic.name},
                                           {"partition", partition.partition_index},
                                           {"bytes", partition.partition_size},
                                           {"offset_lag", partition.offset_lag}});
    }
  }
  return {{"broker", broker},
          {"error", name_of(ErrorCode{dir.error_code})},
          {"path", dir.log_dir},
          {"bytes_total", dir.total_bytes},
          {"bytes_usable", dir.usable_bytes},
          {"partitions", std::move(partitions)}};
}

// -1: a broker that does not tell.
std::string text_of(std::int64_t bytes) { return bytes < 0 ? "?" : std::to_string(bytes); }

Task<> dirs(Environment& environment, const Context& context) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  std::vector<std::string> no_topics;
  MR_CO_TRY(const auto known, co_await cluster->metadata(std::move(no_topics)));
  json::array described;
  Table table({"BROKER", "PATH", "PARTITIONS", "BYTES", "USABLE", "TOTAL", "ERROR"});
  for (const auto& info : known.brokers) {
    MR_CO_TRY(auto* broker, co_await cluster->broker(info.id));
    kafka::DescribeLogDirsRequest all;
    all.topics.reset();
    MR_CO_TRY(const auto answer, co_await broker->call(std::move(all)));
    if (const ErrorCode code{answer.error_code}; code != ErrorCode::none) {
      co_return error_of(code, "log directories of broker " + std::to_string(info.id));
    }
    for (const auto& dir : answer.results) {
      described.emplace_back(describe(info.id, dir));
      const auto total = total_of(dir);
      const ErrorCode code{dir.error_code};
      table.add({std::to_string(info.id), std::string(dir.log_dir),
                 std::to_string(total.partitions), std::to_string(total.bytes),
                 text_of(dir.usable_bytes), text_of(dir.total_bytes),
                 code == ErrorCode::none ? "" : std::string(name_of(code))});
    }
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"log_dirs", std::move(described)}});
  } else {
    table.print();
  }
  co_return {};
}

}  // namespace

void add_log_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb =
      app.add_subcommand("log", "what brokers keep on their disks: show it, check it, repair it");
  verb->require_subcommand(1);
  auto* dirs_verb =
      verb->add_subcommand("dirs", "show log directories, their sizes and what space is left");
  add_examples(*dirs_verb, {"millrace log dirs"});
  dirs_verb->callback([&context, &action] {
    action = [&context] {
      return run([&](Environment& environment) { return dirs(environment, context); });
    };
  });
  add_log_dump_verb(*verb, context, action);
  add_log_verify_verb(*verb, context, action);
  add_log_repair_verb(*verb, context, action);
}

}  // namespace millrace::kernel::cli
