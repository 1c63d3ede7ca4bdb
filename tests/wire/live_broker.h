// The broker that a session is replayed against: a process of our own, and blocking connections.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include <millrace/environment.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/frame_reader.h>

namespace millrace::wire {

inline constexpr auto answer_wait_max = std::chrono::seconds(30);

/// One TCP connection that sends and receives whole frames.
class Link {
 public:
  static Result<std::unique_ptr<Link>> connect(const Address& address);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  /// `frame` is with its size in front.
  Result<> send(Bytes frame);
  /// The next frame, without its size. Errc::closed when the peer has closed, Errc::timed_out when
  /// nothing came in `wait`.
  Result<Buffer> receive(std::chrono::milliseconds wait = answer_wait_max);
  /// Tells the peer that nothing more will be sent; what it still answers can be received.
  void finish_sending() noexcept;

  /// Sends a request of ours and decodes its answer.
  template <class Request>
  Result<typename Request::Response> ask(const Request& request, std::int16_t version) {
    MR_TRY(const auto payload, kafka::encode_request(0, "replay-session", version, request));
    MR_TRY(const auto frame, payload.flatten());
    MR_CHECK(send(frame));
    MR_TRY(auto answer, receive());
    return kafka::decode_response<typename Request::Response>(std::move(answer), version, 0);
  }

 private:
  explicit Link(int socket) : socket_(socket), reader_(1UL << 30) {}
  const int socket_;
  kafka::FrameReader reader_;
};

/// What a broker offers, by its own word.
using ServedApis = std::map<std::int16_t, kafka::VersionRange>;
Result<ServedApis> ask_served_apis(const Address& address);

/// A millraced over a temporary folder; ended with the object, and the folder with
/// it.
class BrokerProcess {
 public:
  /// `settings` are KEY=VALUE as for --set. Returns once the broker listens; else the error has the
  /// end of its log.
  static Result<std::unique_ptr<BrokerProcess>> start(const std::string& program,
                                                      const std::vector<std::string>& settings);
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;
  ~BrokerProcess();

  const Address& address() const noexcept { return address_; }

 private:
  explicit BrokerProcess(std::string folder) : folder_(std::move(folder)) {}
  Result<> spawn(const std::string& program, const std::vector<std::string>& settings);
  Result<> wait_until_it_listens();
  /// Takes what the broker logs until it ends, so that it never waits for us.
  void keep_log(int from);

  const std::string folder_;
  Address address_;
  pid_t process_ = -1;
  std::mutex mutex_;  // of what follows
  std::condition_variable log_changed_;
  std::string log_;
  bool ended_ = false;
  std::jthread log_keeper_;
};

}  // namespace millrace::wire
