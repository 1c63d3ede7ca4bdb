#include "connection.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "frame_head.h"

namespace millrace::kafka_transport {
namespace {

/// How long a peer that has closed its side may wait for answers; longer than usual long polls.
constexpr Duration half_closed_max = std::chrono::seconds(10);

/// A request that has begun holds memory that others may wait for, so its bytes must keep coming.
constexpr Duration request_stall_max = std::chrono::seconds(30);

/// Requests without records up to this size do not count towards the memory cap: heartbeats, polls
/// and look-ups go on while records wait for memory.
constexpr std::size_t free_request_bytes = 4 << 10;

/// A connection that has used so much of its block, and waits, takes another one: with the pages of
/// all blocks in use, thousands of connections would hold more than what they receive.
constexpr std::size_t block_used_bytes_max = 2 << 10;

/// What is received first where a connection waits without a block: most requests of those who have
/// little to say.
constexpr std::size_t first_bytes_max = 1 << 10;

/// How long what still comes is read after the last answer to a peer that is let go.
constexpr Duration linger_max = std::chrono::milliseconds(500);

/// What is handed to the stream at once lets go of its memory at once.
constexpr std::uint64_t send_bytes_max = 1 << 20;

}  // namespace

Connection::Connection(const ListenerContext& context, Shard& shard, ShardLoad& load,
                       std::unique_ptr<Stream> stream)
    : context_(context),
      shard_(shard),
      stream_(std::move(stream)),
      client_{.peer = stream_->peer(), .listener = context.listener},
      session_(context.broker.open_session(client_)),
      reader_(static_cast<std::size_t>(context.settings.frame_bytes_max)),
      load_(load),
      memory_(load.answers),
      unread_since_(shard.now()),
      active_at_(shard.now()),
      turn_began_(shard.now()) {}

Task<> Connection::run() {
  undisturbed_.emplace(&scope_);
  load_.woken();
  watch_idle();
  spawn(shard_, write_answers(), "kafka answers", &scope_);
  auto reading = read_requests().within(scope_);
  const auto read = co_await std::move(reading);
  if (!read) explain(read.error());
  reading_ended_ = true;
  end();
  auto answering = with_deadline(running_.close(), half_closed_max);
  const auto answered = co_await std::move(answering);
  if (!answered) abort();
  auto leaving = running_.close();
  const auto left = co_await std::move(leaving);
  MR_ASSERT(left.has_value());
  shard_.unschedule(idle_timer_);
  co_return {};
}

void Connection::stop() noexcept {
  end();
  polls_.cancel();
}

void Connection::end() noexcept {
  ending_ = true;
  answered_.notify();
  turn_.passed().notify();
}

void Connection::abort() noexcept {
  if (std::exchange(aborted_, true)) return;
  ending_ = true;
  scope_.cancel();
  stream_->close();
}

Task<> Connection::read_requests() {
  while (true) {
    while (!ending_ && !has_room()) {
      auto waiting = turn_.passed().wait();
      MR_CO_CHECK(co_await std::move(waiting));
      turn_began_ = shard_.now();
    }
    while (reader_.pending().size() < frame_size_bytes) MR_CO_CHECK(co_await receive());
    MR_CO_CHECK(
        check_frame_size(reader_.pending(), first_frame_, context_.settings.frame_bytes_max));
    first_frame_ = false;
    while (reader_.pending().size() < frame_head_bytes) MR_CO_CHECK(co_await receive());
    const auto asked = read_frame_head(reader_.pending());
    MR_CO_TRY(const auto* api, context_.apis.find(asked.api_key, asked.api_version));

    RequestMemory::Lease memory;
    if (asked.frame_bytes > free_request_bytes || api->info->key == kafka::ApiKey::produce) {
      if (load_.requests.is_large(asked.frame_bytes)) {
        auto acquiring = load_.requests.acquire(asked.frame_bytes);
        MR_CO_TRY(memory, co_await std::move(acquiring));
      } else {
        auto acquiring = load_.requests.acquire_small(asked.frame_bytes);
        MR_CO_TRY(memory.frame, co_await std::move(acquiring));
      }
    }
    MR_CO_TRY(auto frame, reader_.next());
    if (!frame && memory.frame.bytes() > 0) {
      arriving_since_ = shard_.now();
      arriving_bytes_ = asked.frame_bytes;
    }
    while (!frame) {
      MR_CO_CHECK(co_await receive_rest());
      MR_CO_TRY(frame, reader_.next());
    }
    arriving_bytes_ = 0;
    memory.arriving.shrink_to(0);
    MR_CO_TRY(auto head, kafka::decode_request_head(*std::move(frame)));

    if (lingering_) continue;
    if (ending_) co_return {};
    turn_.take();
    auto handling = handle(*api, std::move(head), std::move(memory.frame), answers_.reserve());
    spawn(shard_, std::move(handling), "kafka request", api->polls ? &polls_ : &scope_);
    if (!reader_.pending().empty() && load_.turns.over(shard_.now() - turn_began_)) {
      MR_CO_CHECK(co_await load_.turns.yield());
      turn_began_ = shard_.now();
    }
  }
}

Task<> Connection::receive() {
  const bool had_nothing_to_do = reader_.pending().empty();
  auto receiving = had_nothing_to_do ? receive_first() : receive_more();
  const auto bytes = co_await std::move(receiving);
  if (!bytes) {
    abort();  // unlike a peer that has only closed its side, this one reads no answers
    co_return bytes.error();
  }
  if (*bytes == 0) {
    if (!reader_.pending().empty()) {
      context_.log.info("peer closed its connection in the middle of a request",
                        {{"peer", to_string(client_.peer)},
                         {"client", client_.client_id},
                         {"received_bytes", reader_.pending().size()}});
    }
    polls_.cancel();  // it has most likely gone, and the rest comes without waiting
    co_return Error{Errc::closed, "peer closed the connection"};
  }
  active_at_ = shard_.now();
  if (had_nothing_to_do) turn_began_ = active_at_;
  context_.metrics.bytes_in.add(*bytes);
  co_return {};
}

Task<std::size_t> Connection::receive_more() {
  auto receiving = stream_->receive(reader_.space());
  MR_CO_TRY(const auto bytes, co_await std::move(receiving));
  reader_.filled(bytes);
  block_used_bytes_ += bytes;
  co_return bytes;
}

Task<std::size_t> Connection::receive_first() {
  if (!load_.crowded) {
    if (block_used_bytes_ > block_used_bytes_max) drop_block();
    // As receive_more(), of which each request would cost one coroutine more.
    auto receiving = stream_->receive(reader_.space()).within(*undisturbed_);
    auto received = co_await std::move(receiving);
    if (received) reader_.filled(*received);
    if (received) block_used_bytes_ += *received;
    if (!undisturbed_->cancelled()) co_return std::move(received);
    undisturbed_.emplace(&scope_);
    if (received || received.error().code != Errc::cancelled) co_return std::move(received);
  }
  drop_block();
  dozing_ = true;
  std::array<std::byte, first_bytes_max> first;
  auto waiting = stream_->receive(first);
  auto received = co_await std::move(waiting);
  dozing_ = false;
  if (!received || *received == 0) co_return std::move(received);
  load_.woken();
  std::ranges::copy(std::span(first).first(*received), reader_.space().begin());
  reader_.filled(*received);
  block_used_bytes_ += *received;
  co_return std::move(received);
}

void Connection::drop_block() {
  MR_ASSERT(reader_.pending().empty());
  reader_ = kafka::FrameReader(static_cast<std::size_t>(context_.settings.frame_bytes_max));
  block_used_bytes_ = 0;
}

bool Connection::doze(MonoTime before) noexcept {
  if (dozing_) return true;
  if (active_at_ > before || !reader_.pending().empty()) return false;
  undisturbed_->cancel();
  return dozing_;
}

std::optional<Connection::Arriving> Connection::arriving() const noexcept {
  if (arriving_bytes_ == 0) return std::nullopt;
  return Arriving{arriving_since_, arriving_bytes_, reader_.pending().size()};
}

Task<> Connection::receive_rest() {
  auto receiving = with_deadline(receive(), request_stall_max);
  auto received = co_await std::move(receiving);
  if (received || received.error().code != Errc::timed_out) co_return std::move(received);
  context_.log.info("closing a connection whose peer stopped in the middle of a request",
                    {{"peer", to_string(client_.peer)},
                     {"client", client_.client_id},
                     {"received_bytes", reader_.pending().size()}});
  co_return Error{Errc::closed, "peer stopped in the middle of a request"};
}

bool Connection::has_room() const noexcept {
  return !turn_.taken() && answers_.size() < context_.settings.requests_in_flight_max &&
         memory_.has_room();
}

void Connection::account_memory() {
  const auto bytes = answers_.memory_bytes() + sending_bytes_;
  if (memory_.bytes() == 0) unread_since_ = shard_.now();
  memory_.set(bytes);
}

Task<> Connection::handle(const Api& api, kafka::RequestHead head, MemoryBudget::Lease memory,
                          AnswerQueue::Ticket ticket) {
  MR_CO_TRY(const auto pass, running_.enter());
  const auto& metrics = context_.metrics.of(api);
  metrics.requests.add();
  const auto began_at = shard_.now();
  const auto version = head.version;
  const auto client_id = head.client_id.value_or("");
  if (client_.client_id != client_id) client_.client_id = client_id;

  Request request(context_, *session_, client_, std::move(head), std::move(memory), turn_);
  auto handling = api.handler(request);
  auto answer = co_await std::move(handling);
  metrics.took.observe(shard_.now() - began_at);
  if (request.bomb()) end_for_bomb(*request.bomb());
  if (answer) {
    answers_.put(ticket, *std::move(answer));
    account_memory();
    answered_.notify();
    co_return {};
  }
  auto error = std::move(answer).error();
  error.detail = std::string(api.info->name) + " version " + std::to_string(version) + ": " +
                 std::move(error.detail);
  explain(error);
  answers_.cut(ticket);
  account_memory();
  end();
  co_return {};
}

Task<> Connection::write_answers() {
  MR_CO_TRY(const auto pass, running_.enter());
  while (!(ending_ && answers_.empty())) {
    while (!answers_.front_is_ready() && !(ending_ && answers_.empty())) {
      auto waiting = answered_.wait();
      MR_CO_CHECK(co_await std::move(waiting));
    }
    auto ready = answers_.take_ready(send_bytes_max);
    turn_.passed().notify();
    if (ready.answers.empty()) continue;
    const auto bytes = ready.answers.size();
    sending_bytes_ = ready.memory_bytes;
    sending_ = true;
    auto sending = stream_->send(std::move(ready.answers));
    const auto sent = co_await std::move(sending);
    sending_ = false;
    sending_bytes_ = 0;
    account_memory();
    if (!sent) {
      explain(sent.error());
      break;
    }
    active_at_ = unread_since_ = shard_.now();
    turn_.passed().notify();
    context_.metrics.bytes_out.add(bytes);
  }
  if (lingering_ && !aborted_) {
    auto lingering = with_deadline(reading_ended(), linger_max);
    static_cast<void>(co_await std::move(lingering));
  }
  abort();
  co_return {};
}

Task<> Connection::reading_ended() {
  while (!reading_ended_) {
    auto waiting = answered_.wait();
    MR_CO_CHECK(co_await std::move(waiting));
  }
  co_return {};
}

void Connection::end_for_bomb(const std::string& bomb) {
  if (!std::exchange(lingering_, true)) {
    context_.metrics.bombs.add();
    context_.log.warning(
        "closing a connection that sent a decompression bomb",
        {{"peer", to_string(client_.peer)}, {"client", client_.client_id}, {"reason", bomb}});
  }
  end();
}

void Connection::watch_idle() {
  const auto idle_max = context_.settings.idle_max;
  if (idle_max == Duration::zero()) return;
  idle_timer_ = shard_.schedule(active_at_ + idle_max, [this, idle_max] {
    // A request being worked on is no idleness, unless its answer is stuck behind a reader that is.
    if (!sending_ && !answers_.empty()) active_at_ = shard_.now();
    if (shard_.now() - active_at_ < idle_max) return watch_idle();
    idle_timer_ = TimerId::none;
    context_.metrics.idle.add();
    context_.log.debug("closing an idle connection", {{"peer", to_string(client_.peer)}});
    abort();
  });
}

void Connection::explain(const Error& error) const {
  const auto peer = to_string(client_.peer);
  switch (error.code) {
    case Errc::closed:
    case Errc::cancelled:
    case Errc::io:
      context_.log.debug("connection ends", {{"peer", peer}, {"reason", error.detail}});
      break;
    case Errc::corrupt:
    case Errc::unsupported:
      context_.metrics.bad_requests.add();
      context_.log.warning(
          "closing a connection that sent a bad request",
          {{"peer", peer}, {"client", client_.client_id}, {"reason", error.detail}});
      break;
    default:
      context_.log.error("closing a connection whose request failed here",
                         {{"peer", peer}, {"reason", to_string(error)}});
      break;
  }
}

}  // namespace millrace::kafka_transport
