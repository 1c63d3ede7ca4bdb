#include <millrace/kafka/client.h>

#include <algorithm>
#include <deque>
#include <vector>

#include <millrace/error_code.h>
#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/frame_reader.h>
#include <millrace/shard.h>

namespace millrace::kafka {

struct Client::Connection : std::enable_shared_from_this<Client::Connection> {
  Connection(std::unique_ptr<Stream> connected, Shard& home, ClientOptions chosen)
      : stream(std::move(connected)),
        shard(home),
        options(std::move(chosen)),
        reader(options.frame_bytes_max) {}

  struct Waiting {
    std::int32_t correlation_id;
    Resolver<Buffer> answer;
    MonoTime since;
  };
  struct Offered {
    std::int16_t key;
    VersionRange versions;
  };

  std::unique_ptr<Stream> stream;
  Shard& shard;
  ClientOptions options;
  FrameReader reader;
  std::vector<Offered> offered;  // by the broker
  std::int32_t last_id = 0;
  std::deque<Waiting> waiting;  // a broker answers in order
  Payload unsent;
  bool sending = false;
  TimerId patience = TimerId::none;  // of the oldest call, or of one that was
  Error end{Errc::ok, {}};

  bool open() const noexcept { return end.code == Errc::ok; }

  void fail(Error error) {
    if (!open()) return;
    end = std::move(error);
    if (patience != TimerId::none) shard.unschedule(std::exchange(patience, TimerId::none));
    stream->close();
    unsent = {};
    for (auto& call : std::exchange(waiting, {})) call.answer.resolve(end);
  }

  /// Gives the broker up when the oldest call has waited for too long.
  void be_patient() {
    if (options.answer_within == Duration{} || patience != TimerId::none || waiting.empty()) return;
    const auto until = waiting.front().since + options.answer_within;
    patience = shard.schedule(until, [self = weak_from_this()] {
      const auto connection = self.lock();
      if (!connection) return;
      connection->patience = TimerId::none;
      const auto& calls = connection->waiting;
      const auto limit = connection->options.answer_within;
      if (!calls.empty() && connection->shard.now() >= calls.front().since + limit) {
        connection->fail(
            {Errc::timed_out, to_string(connection->stream->peer()) + " has not answered for " +
                                  std::to_string(limit / std::chrono::seconds(1)) + " s"});
      }
      connection->be_patient();
    });
  }

  /// Hands the answer to the oldest call.
  Result<> deliver(Buffer frame) {
    if (frame.size() < sizeof(std::int32_t)) return Error{Errc::corrupt, "answer without header"};
    const auto id = load_be<std::int32_t>(frame.data());
    if (waiting.empty() || waiting.front().correlation_id != id) {
      return Error{Errc::corrupt, "answer to request " + std::to_string(id) +
                                      ", which is not the oldest without one"};
    }
    auto call = std::move(waiting.front());
    waiting.pop_front();
    call.answer.resolve(std::move(frame));
    return {};
  }

  Result<> deliver_all() {
    while (true) {
      MR_TRY(auto frame, reader.next());
      if (!frame) return {};
      MR_CHECK(deliver(*std::move(frame)));
    }
  }

  Task<> receive() {
    while (open()) {
      const auto space = reader.space();
      MR_CO_TRY(const auto bytes, co_await stream->receive(space));
      if (bytes == 0)
        co_return Error{Errc::closed, to_string(stream->peer()) + " closed the connection"};
      reader.filled(bytes);
      MR_CO_CHECK(deliver_all());
    }
    co_return {};
  }

  /// Sends what has gathered, until nothing has.
  Task<> drain() {
    while (open() && !unsent.empty()) {
      auto payload = std::exchange(unsent, {});
      MR_CO_CHECK(co_await stream->send(std::move(payload)));  // more may gather meanwhile
    }
    co_return {};
  }

  // Roots of their own: they keep the connection until the stream is done with it.
  static Task<> run_receive(std::shared_ptr<Connection> self) {
    auto result = co_await self->receive();
    if (!result) self->fail(std::move(result).error());
    co_return {};
  }
  static Task<> run_drain(std::shared_ptr<Connection> self) {
    auto result = co_await self->drain();
    self->sending = false;
    if (!result) self->fail(std::move(result).error());
    co_return {};
  }
};

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

Client::~Client() { close(); }

Task<std::unique_ptr<Client>> Client::connect(Network& network, Address address,
                                              ClientOptions options) {
  Shard& shard = co_await this_shard();
  MR_CO_TRY(auto stream, co_await network.connect(std::move(address)));
  auto connection = std::make_shared<Connection>(std::move(stream), shard, std::move(options));
  std::unique_ptr<Client> client(new Client(connection));
  spawn(shard, Connection::run_receive(std::move(connection)), "kafka client");
  MR_CO_CHECK(co_await client->negotiate());
  co_return std::move(client);
}

Task<> Client::negotiate() {
  ApiVersionsRequest request;
  request.client_software_name = connection_->options.software;
  request.client_software_version = "1";
  auto version = info_of(ApiKey::api_versions).served.max;
  while (true) {
    const auto id = next_id();
    MR_CO_TRY(auto frame, encode_request(id, client_id(), version, request));
    auto waiting = exchange(id, std::move(frame));
    MR_CO_TRY(auto answer, co_await waiting);

    // A broker that does not know our version answers in version 0, and says which it knows.
    constexpr std::size_t header_bytes = sizeof(std::int32_t);
    const bool refused = answer.size() >= header_bytes + 2 &&
                         load_be<std::int16_t>(answer.data() + header_bytes) ==
                             static_cast<std::int16_t>(ErrorCode::unsupported_version);
    const auto answered = refused ? std::int16_t{0} : version;
    MR_CO_TRY(const auto versions, decode_response<ApiVersionsResponse>(answer, answered, id));
    connection_->offered.clear();
    for (const auto& api : versions.api_keys) {
      connection_->offered.push_back({api.api_key, {api.min_version, api.max_version}});
    }
    if (!refused) {
      if (versions.error_code == 0) co_return {};
      co_return Error{Errc::unsupported,
                      "ApiVersions: error code " + std::to_string(versions.error_code)};
    }
    if (version == 0) co_return Error{Errc::unsupported, "the broker refuses ApiVersions"};
    const auto shared = version_of(ApiKey::api_versions);
    version = shared && *shared < version ? *shared : std::int16_t{0};
  }
}

Result<std::int16_t> Client::version_of(ApiKey api) const {
  const auto& info = info_of(api);
  const auto& offered = connection_->offered;
  const auto at =
      std::ranges::find(offered, static_cast<std::int16_t>(api), &Connection::Offered::key);
  if (at == offered.end()) {
    return Error{Errc::unsupported, "the broker has no API " + std::string(info.name)};
  }
  const auto version = std::min(info.served.max, at->versions.max);
  if (version < info.known.min || version < at->versions.min) {
    return Error{Errc::unsupported, std::string(info.name) + ": the broker speaks versions " +
                                        std::to_string(at->versions.min) + " to " +
                                        std::to_string(at->versions.max) + ", we " +
                                        std::to_string(info.known.min) + " to " +
                                        std::to_string(info.served.max)};
  }
  return version;
}

std::int32_t Client::next_id() noexcept {
  auto& id = connection_->last_id;
  id = id == INT32_MAX ? 1 : id + 1;
  return id;
}

std::string_view Client::client_id() const noexcept { return connection_->options.client_id; }

Pending<Buffer> Client::exchange(std::int32_t correlation_id, Payload frame) {
  if (!connection_->open()) return Pending<Buffer>::ready(connection_->end);
  auto [resolver, pending] = make_pending<Buffer>();
  connection_->waiting.push_back({correlation_id, std::move(resolver), connection_->shard.now()});
  connection_->be_patient();
  post(std::move(frame));
  return std::move(pending);
}

void Client::post(Payload frame) {
  auto& connection = *connection_;
  connection.unsent.add(std::move(frame));
  if (std::exchange(connection.sending, true)) return;
  spawn(connection.shard, Connection::run_drain(connection_), "kafka client");
}

const Address& Client::peer() const noexcept { return connection_->stream->peer(); }

Result<> Client::status() const {
  if (connection_->open()) return {};
  return connection_->end;
}

void Client::close() noexcept { connection_->fail({Errc::closed, "closed"}); }

}  // namespace millrace::kafka
