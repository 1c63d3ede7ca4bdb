// As many one-record requests as the broker answers. The frames are made once; an answer costs the
// client one look at its error code, so that the broker is what is measured.
#include <sys/epoll.h>
#include <unistd.h>

#include <cstring>
#include <deque>

#include <millrace/batch.h>
#include <millrace/bytes.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/produce.h>

#include "load.h"
#include "socket.h"

namespace millrace::bench {
namespace {

constexpr std::int16_t produce_version = 7;  // no tagged fields: the error code has a fixed place

template <class T>
T need(Result<T> result) {
  if (!result) throw LoadFailed(to_string(result.error()));
  return *std::move(result);
}

Buffer make_request(const Load& load, int partition) {
  const auto value = make_text(load.message_bytes);
  BatchBuilder batch({});
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  batch.add(Timestamp{now.count()}, std::nullopt, as_bytes(value));

  kafka::ProduceRequest request;
  request.acks = static_cast<std::int16_t>(load.acks == "all" ? -1 : std::stoi(load.acks));
  request.timeout_ms = 30'000;
  auto& topic = request.topic_data.emplace_back();
  topic.name = load.topic;
  auto& records = topic.partition_data.emplace_back();
  records.index = partition;
  records.records = need(std::move(batch).finish());
  return flat(need(kafka::encode_request(1, "bench", produce_version, request)));
}

class Connection {
 public:
  Connection(const Load& load, int partition)
      : socket_(load.address),
        request_(make_request(load, partition)),
        // correlation id, topic count, the name with its length, partition count, partition
        error_at_(4 + 4 + 2 + load.topic.size() + 4 + 4) {
    wait_for_leader();
  }

  int descriptor() const { return socket_.descriptor(); }
  std::size_t in_flight() const { return sent_.size(); }

  void send() {
    sent_.push_back(Clock::now());
    socket_.send(request_);
  }

  /// Takes what is there; returns how many answers that completed.
  int receive(Histogram& latency) {
    filled_ += socket_.receive_some(MutableBytes(answers_).subspan(filled_));
    const auto now = Clock::now();
    std::size_t at = 0;
    int answers = 0;
    while (filled_ - at >= 4) {
      const auto size = static_cast<std::size_t>(load_be<std::int32_t>(answers_.data() + at)) + 4;
      if (filled_ - at < size) break;
      const auto error = load_be<std::int16_t>(answers_.data() + at + 4 + error_at_);
      if (error != 0)
        throw LoadFailed("a produce was answered with error " + std::to_string(error));
      latency.add(
          std::chrono::duration_cast<std::chrono::microseconds>(now - sent_.front()).count());
      sent_.pop_front();
      at += size;
      ++answers;
    }
    std::memmove(answers_.data(), answers_.data() + at, filled_ - at);
    filled_ -= at;
    return answers;
  }

 private:
  static void check(std::int16_t error) {
    if (error != 0) throw LoadFailed("a produce was answered with error " + std::to_string(error));
  }

  /// A broker may have a topic for a moment before it takes records for it.
  void wait_for_leader() {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    for (;;) {
      socket_.send(request_);
      const auto error = load_be<std::int16_t>(socket_.receive_frame().data() + error_at_);
      if (error == 0) return;
      if (Clock::now() > deadline) check(error);
    }
  }

  Socket socket_;
  Buffer request_;
  std::size_t error_at_;
  std::deque<Clock::time_point> sent_;
  std::vector<std::byte> answers_ = std::vector<std::byte>(64UL << 10);
  std::size_t filled_ = 0;
};

class Poll {
 public:
  Poll() : descriptor_(epoll_create1(0)) {}
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;
  ~Poll() { close(descriptor_); }

  void add(int descriptor, Connection& connection) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
    epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &event);
  }
  std::vector<Connection*> wait() {
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(descriptor_, events.data(), events.size(), 10'000);
    if (count <= 0) throw LoadFailed("no answer in 10 s");
    std::vector<Connection*> ready;
    for (int at = 0; at < count; ++at) {
      ready.push_back(static_cast<Connection*>(events[static_cast<std::size_t>(at)].data.ptr));
    }
    return ready;
  }

 private:
  int descriptor_;
};

}  // namespace

Figures small_requests(const Load& load) {
  Poll poll;
  std::deque<Connection> connections;
  for (int at = 0; at < load.connections; ++at) {
    auto& connection = connections.emplace_back(load, at % load.partitions);
    poll.add(connection.descriptor(), connection);
  }
  Figures figures;
  const auto started = Clock::now();
  const auto end = started + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(load.seconds));
  std::size_t in_flight = 0;
  for (auto& connection : connections) {
    for (int at = 0; at < load.depth; ++at) connection.send();
    in_flight += connection.in_flight();
  }
  while (in_flight > 0) {
    for (auto* connection : poll.wait()) {
      const int answers = connection->receive(figures.latency);
      figures.messages += answers;
      in_flight -= static_cast<std::size_t>(answers);
      if (Clock::now() >= end) continue;
      for (int at = 0; at < answers; ++at) connection->send();
      in_flight += static_cast<std::size_t>(answers);
    }
  }
  figures.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  figures.bytes = figures.messages * static_cast<std::int64_t>(load.message_bytes);
  return figures;
}

}  // namespace millrace::bench
