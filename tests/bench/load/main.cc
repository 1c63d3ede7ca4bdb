// bench-load MODE --broker ADDRESS --topic NAME ...
//
// Puts one load on a broker of the Kafka protocol and prints its figures as one JSON line. The
// topic exists already.

#include <cstdio>
#include <functional>
#include <map>

#include <CLI/CLI.hpp>

#include "load.h"

namespace millrace::bench {
namespace {

const std::map<std::string, std::function<Figures(const Load&)>> modes{
    {"produce", produce},
    {"consume", consume},
    {"e2e", end_to_end},
    {"paced", produce_paced},
    {"small", small_requests},
    {"raw-fetch", raw_fetch},
    {"plain-append", plain_append},
    {"plain-e2e", plain_end_to_end},
    {"plain-fetch", plain_fetch},
    {"classic-heartbeats", classic_heartbeats},
    {"consumer-heartbeats", consumer_heartbeats},
};

void print(const Figures& figures) {
  std::printf(R"({"messages": %lld, "bytes": %lld, "seconds": %.4f, "client_cpu_seconds": %.3f)",
              static_cast<long long>(figures.messages), static_cast<long long>(figures.bytes),
              figures.seconds, cpu_seconds());
  if (figures.latency.total() > 0) {
    std::printf(R"(, "p50_us": %llu, "p99_us": %llu, "p999_us": %llu, "max_us": %llu)",
                static_cast<unsigned long long>(figures.latency.quantile(0.5)),
                static_cast<unsigned long long>(figures.latency.quantile(0.99)),
                static_cast<unsigned long long>(figures.latency.quantile(0.999)),
                static_cast<unsigned long long>(figures.latency.max()));
  }
  if (figures.server_cpu_seconds > 0) {
    std::printf(R"(, "server_cpu_seconds": %.4f)", figures.server_cpu_seconds);
  }
  std::printf("}\n");
}

int run(int argc, char** argv) {
  CLI::App app("Puts one load on a broker and prints its figures.");
  Load load;
  std::string mode;
  app.add_option("mode", mode)->required()->check(CLI::IsMember(modes));
  app.add_option("--broker", load.address, "not of the plain server");
  app.add_option("--topic", load.topic);
  app.add_option("--partitions", load.partitions)->check(CLI::PositiveNumber);
  app.add_option("--messages", load.messages);
  app.add_option("--bytes", load.message_bytes, "of a message")->check(CLI::Range(8, 1'000'000));
  app.add_option("--acks", load.acks)->check(CLI::IsMember({"0", "1", "all"}));
  app.add_option("--compression", load.compression);
  app.add_option("--linger-ms", load.linger_ms);
  app.add_flag("--scatter", load.scatter, "each message to a random partition");
  app.add_option("--connections", load.connections)->check(CLI::PositiveNumber);
  app.add_option("--depth", load.depth, "requests in flight on a connection");
  app.add_option("--passes", load.passes, "over what is fetched");
  app.add_option("--seconds", load.seconds);
  app.add_option("--file", load.file, "that the plain server sends or appends to");
  app.add_option("--per-second", load.per_second, "messages of the paced load");
  CLI11_PARSE(app, argc, argv);
  print(modes.at(mode)(load));
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  try {
    return millrace::bench::run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench-load: %s\n", failure.what());
    return 1;
  }
}
