// A small client: one connection to one broker, typed calls, any number of them in flight. For peer
// links, the command line tool and tests; it neither retries nor follows leaders, its callers do.
//
//   MR_CO_TRY(auto client, co_await Client::connect(environment.network(), address, {}));
//   MetadataRequest request;
//   MR_CO_TRY(auto answer, co_await client->call(std::move(request)));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <millrace/environment.h>
#include <millrace/kafka/codec.h>
#include <millrace/task.h>

namespace millrace::kafka {

struct ClientOptions {
  std::string client_id = "millrace";
  std::string software = "millrace";                     ///< what ApiVersions tells of us (KIP-511)
  std::size_t frame_bytes_max = std::size_t{256} << 20;  ///< of an answer
  /// A broker that leaves a call without its answer for longer is given up: the connection ends
  /// with Errc::timed_out. Zero: it is waited for.
  Duration answer_within{};
};

/// [the shard that connected]
class Client {
 public:
  /// Connects and asks which versions the broker speaks (KIP-35).
  static Task<std::unique_ptr<Client>> connect(Network& network, Address address,
                                               ClientOptions options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// As close().
  ~Client();

  /// Sends in the order of calls and completes with the answer, which owns the frame that its
  /// strings point into. What `request` refers to must live until the call's first suspension.
  /// Errc::unsupported when the broker and we share no version, or the one we share cannot carry
  /// what the request says; the connection's own error when it ends first. A call that is cancelled
  /// was sent all the same; its answer is dropped. Once begun, it may outlive the client.
  template <class Request>
  Task<typename Request::Response> call(Request request) {
    using Response = typename Request::Response;
    MR_CO_TRY(const auto version, version_of(Request::api_key));
    const auto id = next_id();
    MR_CO_TRY(auto frame, encode_request(id, client_id(), version, request));
    auto waiting = exchange(id, std::move(frame));
    MR_CO_TRY(auto answer, co_await waiting);
    co_return decode_response<Response>(std::move(answer), version, id);
  }

  /// For the one request that has no answer: Produce with acks = 0. Completes at once; errors of
  /// the connection show in later calls.
  template <class Request>
  Result<> send(const Request& request) {
    MR_CHECK(status());
    MR_TRY(const auto version, version_of(Request::api_key));
    MR_TRY(auto frame, encode_request(next_id(), client_id(), version, request));
    post(std::move(frame));
    return {};
  }

  /// The newest version that the broker and we speak.
  Result<std::int16_t> version_of(ApiKey api) const;

  const Address& peer() const noexcept;
  /// Once the connection has ended: why.
  Result<> status() const;
  /// Calls in flight end with Errc::closed. Idempotent.
  void close() noexcept;

 private:
  struct Connection;
  explicit Client(std::shared_ptr<Connection> connection);

  Task<> negotiate();
  std::int32_t next_id() noexcept;
  std::string_view client_id() const noexcept;
  /// Queues a frame; the pending one completes with the answer's frame.
  Pending<Buffer> exchange(std::int32_t correlation_id, Payload frame);
  void post(Payload frame);

  std::shared_ptr<Connection> connection_;  // shared with the tasks that send and receive
};

}  // namespace millrace::kafka
