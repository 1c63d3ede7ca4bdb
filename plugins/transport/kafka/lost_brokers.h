// Brokers that cannot be reached and may still be told of as leaders. Clients look again and again
// then, at times of their own: one that asks again is answered once there is another leader.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <millrace/broker.h>
#include <millrace/environment.h>

namespace millrace::kafka_transport {

/// [any thread]
class LostBrokers {
 public:
  /// What came of connecting to a broker.
  void note(const Address& broker, bool reached, MonoTime now);
  /// Whether there may be one. Costs next to nothing.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// Whether a partition of the answer is led by one that is lost, and not for so long that it must
  /// be cut off from us and not dead.
  bool leads(const MetadataAnswer& answer, MonoTime now);
  /// Whether the connection of that peer was told the same a moment ago. Notes that it is told it.
  bool told_before(const Address& peer, const MetadataAnswer& answer, MonoTime now);

  /// Counts one that waits for another leader, as long as it lives.
  class Waiting {
   public:
    explicit Waiting(LostBrokers& of) noexcept : of_(of) { of_.waiting_.fetch_add(1); }
    ~Waiting() { of_.waiting_.fetch_sub(1); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    LostBrokers& of_;
  };
  /// How long each of them pauses between two looks: longer where many wait, so that all together
  /// take little of the processor just when others take over.
  Duration pause() const noexcept;

 private:
  struct Lost {
    MonoTime since;
    MonoTime tried_at;
  };
  struct Told {
    std::size_t leaders = 0;  // a hash
    MonoTime at;
  };
  void forget_lost(MonoTime now);

  std::atomic<bool> any_ = false;
  std::atomic<std::int64_t> waiting_ = 0;
  std::mutex guard_;
  std::map<std::string, Lost> lost_;
  std::map<std::string, Told> told_;
  std::size_t told_max_ = 0;  // as many may be there until old ones are looked for
};

}  // namespace millrace::kafka_transport
