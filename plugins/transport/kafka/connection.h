// One client connection. A coroutine reads requests, one handles each of them, one writes answers:
//
//   receive -> frames -> handler 1 ---> AnswerQueue -> one send per wake-up
//                        handler 2 --/
//
// A request begins once the one before it is dispatched; answers leave in the order of requests.
// The connection is not read from while memory for the next frame is not free, while too many
// requests are unanswered, or while answers that are not read hold too much memory. However much it
// has to do, others on its shard get their turn after a moment.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include <millrace/broker.h>
#include <millrace/environment.h>
#include <millrace/kafka/frame_reader.h>

#include "answer_queue.h"
#include "api_set.h"
#include "listener_context.h"
#include "request.h"
#include "shard_load.h"
#include "signal.h"

namespace millrace::kafka_transport {

/// [its shard]
class Connection {
 public:
  Connection(const ListenerContext& context, Shard& shard, ShardLoad& load,
             std::unique_ptr<Stream> stream);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Serves until either side ends it; always completes without error. Only afterwards may this be
  /// destroyed.
  Task<> run();
  /// Begins no more requests, answers what was begun, then closes. Polls are cancelled: what they
  /// wait for may never come.
  void stop() noexcept;
  /// Closes at once; what was begun is cancelled.
  void abort() noexcept;
  /// The memory situation has changed: looks again whether the next request may begin.
  void look_for_room() { turn_.passed().notify(); }
  /// Lets go of the block that the next request would be received into, if none has come since
  /// `before`. Whether it keeps none now.
  bool doze(MonoTime before) noexcept;

  const Address& peer() const noexcept { return client_.peer; }
  /// What answers hold that its peer has not read.
  std::uint64_t answer_bytes() const noexcept { return memory_.bytes(); }
  /// Since when its peer has read none of them.
  MonoTime unread_since() const noexcept { return unread_since_; }

  /// A request that memory is held for, and whose bytes are on the way.
  struct Arriving {
    MonoTime since;
    std::size_t bytes = 0;  ///< all of it
    std::size_t received = 0;
  };
  std::optional<Arriving> arriving() const noexcept;

 private:
  Task<> read_requests();
  Task<> receive();
  Task<std::size_t> receive_more();
  /// Without a block to receive into, until something comes.
  Task<std::size_t> receive_first();
  /// Of which nothing waits to be taken.
  void drop_block();
  /// As receive(), for what is missing of a request that has begun.
  Task<> receive_rest();
  Task<> handle(const Api& api, kafka::RequestHead head, MemoryBudget::Lease memory,
                AnswerQueue::Ticket ticket);
  Task<> write_answers();
  Task<> reading_ended();

  /// Begins no more requests.
  void end() noexcept;
  /// Whether the next request may begin.
  bool has_room() const noexcept;
  void account_memory();
  void watch_idle();
  /// Begins no more requests, and reads on for a moment after the last answer: were anything left
  /// unread, the system would take back what the peer has not read.
  void end_for_bomb(const std::string& bomb);
  /// Says why reading, or a request, ended the connection.
  void explain(const Error& error) const;

  const ListenerContext& context_;
  Shard& shard_;
  const std::unique_ptr<Stream> stream_;
  ClientInfo client_;
  const std::unique_ptr<Session> session_;

  CancelScope scope_;  // of all coroutines below run()
  CancelScope polls_{&scope_};

  kafka::FrameReader reader_;
  std::size_t block_used_bytes_ = 0;        // of the reader's block
  std::optional<CancelScope> undisturbed_;  // of a wait with a block for what comes next
  bool dozing_ = false;                     // waits without one
  MonoTime arriving_since_;
  std::size_t arriving_bytes_ = 0;  // of the frame that memory is held for; 0: none
  AnswerQueue answers_;
  Turn turn_;
  Signal answered_;  // an answer is ready, or no more will come
  ShardLoad& load_;
  AnswerMemory::Share memory_;
  std::uint64_t sending_bytes_ = 0;  // in memory, of what is being sent
  MonoTime unread_since_;
  bool sending_ = false;
  bool ending_ = false;  // no more requests begin
  bool aborted_ = false;
  bool lingering_ = false;      // what still comes is read and dropped
  bool reading_ended_ = false;  // nothing comes any more
  bool first_frame_ = true;

  MonoTime active_at_;   // when bytes last moved
  MonoTime turn_began_;  // others waited from then on
  TimerId idle_timer_ = TimerId::none;

  Gate running_;  // the writer and the handlers
};

}  // namespace millrace::kafka_transport
