// Producer ids, unique in the cluster: taken from coordination in blocks, handed out one by one.
#pragma once

#include <cstdint>

#include <millrace/coordination.h>

namespace millrace::kernel {

/// [control thread]
class ProducerIds {
 public:
  ProducerIds(Coordination& coordination, std::int32_t broker_id)
      : coordination_(coordination), broker_id_(broker_id) {}

  Task<std::int64_t> next();

 private:
  Task<> take_block();

  Coordination& coordination_;
  std::int32_t broker_id_;
  std::int64_t next_ = 0;
  std::int64_t last_ = -1;
};

}  // namespace millrace::kernel
