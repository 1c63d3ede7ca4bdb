// What the broker can hand out: whole partitions over raw sockets, and connections that ask for
// nothing.
#include <thread>

#include <millrace/batch.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/fetch.h>

#include "load.h"
#include "socket.h"

namespace millrace::bench {
namespace {

constexpr std::int16_t fetch_version = 4;
constexpr std::int32_t partition_bytes_max = 1 << 20;

template <class T>
T need(Result<T> result) {
  if (!result) throw LoadFailed(to_string(result.error()));
  return *std::move(result);
}

Buffer make_fetch(const Load& load, int partition, Offset from) {
  kafka::FetchRequest request;
  request.max_wait_ms = 0;  // a partition may be empty
  request.min_bytes = 1;
  request.max_bytes = 50 << 20;
  auto& topic = request.topics.emplace_back();
  topic.topic = load.topic;
  auto& wanted = topic.partitions.emplace_back();
  wanted.partition = partition;
  wanted.fetch_offset = from.value;
  wanted.partition_max_bytes = partition_bytes_max;
  return flat(need(kafka::encode_request(1, "bench", fetch_version, request)));
}

/// Counts whole batches; returns the offset behind them.
Offset count_batches(Bytes records, Offset from, Figures& figures) {
  while (records.size() >= batch_header_bytes) {
    const auto header = need(parse_batch_header(records.first(batch_header_bytes)));
    if (header.total_bytes() > records.size()) break;
    figures.messages += header.record_count;
    figures.bytes += static_cast<std::int64_t>(header.total_bytes());
    from = header.last_offset() + 1;
    records = records.subspan(header.total_bytes());
  }
  return from;
}

void read_partition(Socket& socket, const Load& load, int partition, Figures& figures) {
  Offset from{0};
  for (;;) {
    socket.send(make_fetch(load, partition, from));
    const auto answer = need(
        kafka::decode_response<kafka::FetchResponse>(socket.receive_frame(), fetch_version, 1));
    const auto& fetched = answer.responses.at(0).partitions.at(0);
    if (fetched.error_code != 0) {
      throw LoadFailed("a fetch was answered with error " + std::to_string(fetched.error_code));
    }
    const auto before = from;
    if (fetched.records) {
      for (const auto& part : fetched.records->parts()) {
        from = count_batches(std::get<Buffer>(part), from, figures);
      }
    }
    if (from.value >= fetched.high_watermark) return;
    if (from == before) throw LoadFailed("a fetch below the high watermark brought no whole batch");
  }
}

/// Connection `at` reads partitions at, at + connections, ...; or all the same, when there are
/// fewer.
Figures read_share(const Load& load, int at) {
  Figures figures;
  Socket socket(load.address);
  const int stride = std::min(load.connections, load.partitions);
  for (int pass = 0; pass < load.passes; ++pass) {
    for (int partition = at % load.partitions; partition < load.partitions; partition += stride) {
      read_partition(socket, load, partition, figures);
      if (load.connections >= load.partitions) break;
    }
  }
  return figures;
}

}  // namespace

Figures raw_fetch(const Load& load) {
  std::vector<Figures> shares(static_cast<std::size_t>(load.connections));
  const auto started = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int at = 0; at < load.connections; ++at) {
      threads.emplace_back(
          [&, at] { shares[static_cast<std::size_t>(at)] = read_share(load, at); });
    }
  }
  Figures figures;
  figures.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  for (const auto& share : shares) {
    figures.messages += share.messages;
    figures.bytes += share.bytes;
  }
  return figures;
}

}  // namespace millrace::bench
