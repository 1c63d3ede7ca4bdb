// Tasks that the end of their owner waits for.
#pragma once

#include <string>
#include <utility>

#include <millrace/shard.h>

namespace millrace::kernel {

/// Spawns `task`, unless `running` is closed; it is inside until the task ends.
inline void spawn_held(Gate& running, Shard& shard, Task<> task, std::string name,
                       CancelScope* scope = nullptr) {
  auto pass = running.enter();
  if (!pass) return;
  auto held = [](Gate::Pass inside, Task<> body) -> Task<> {
    static_cast<void>(inside);
    co_return co_await std::move(body);
  };
  spawn(shard, held(*std::move(pass), std::move(task)), std::move(name), scope);
}

}  // namespace millrace::kernel
