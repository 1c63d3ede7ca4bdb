// What goes on between the calls of an aggregate: answers that the high watermark lets go, events
// that others have appended to its log, effects.
#include <utility>

#include "kernel/env/backoff.h"
#include "kernel/env/spawn_held.h"
#include "kernel/streams/aggregate_instance.h"

namespace millrace::kernel {

namespace {

constexpr std::uint64_t catch_up_bytes = 1UL << 20;
constexpr Duration effect_retry_first = std::chrono::milliseconds(100);
constexpr Duration effect_retry_longest = std::chrono::seconds(10);

}  // namespace

// ---- the high watermark, and events of others ----

// Told of every move of the high watermark, and when there is something behind what is applied.
void AggregateInstance::follow() {
  if (following_ || dropped_ || partition_->closing() || !partition_->leading()) return;
  following_ = true;
  partition_->watch(*this, applied_, Horizon::high_watermark);
}

void AggregateInstance::on_change(bool readable) {
  if (readable) following_ = false;
  if (in_call_ || look_posted_) return;
  look_posted_ = true;
  host_.shard.post([self = weak_from_this()] {
    const auto alive = self.lock();
    if (!alive) return;
    alive->look_posted_ = false;
    alive->look();
  });
}

void AggregateInstance::look() {
  if (dropped_ || partition_->closing() || !partition_->leading()) return;
  release_held();
  if (!behind()) follow();
}

// Whether a call must wait for events that it would not know of.
bool AggregateInstance::behind() {
  if (!dropped_ && !catching_up_ && partition_->log_end() > applied_) {
    catching_up_ = true;
    spawn_held(host_.running, host_.shard, catch_up(shared_from_this()), "aggregate", &scope_);
  }
  return catching_up_ || !waiting_.empty();
}

void AggregateInstance::release_held() {
  const auto high_watermark = partition_->high_watermark();
  while (!held_.empty() && held_.front().end <= high_watermark) {
    auto held = std::move(held_.front());
    held_.pop_front();
    for (auto& one : held.answers) send(std::move(one));
    begin(std::move(held.effects));
  }
}

void AggregateInstance::send(Answer answer) {
  // Another one may lead by now, and answer otherwise.
  if (!partition_->serving()) {
    return answer.asker.refuse(host_.shard, ErrorCode::not_coordinator,
                               "this broker may not lead its partition any more");
  }
  answer.asker.answer(host_.shard, std::move(answer.answer));
}

// Transactions end in this log by the hand of their coordinator; tools may write to it.
Task<> AggregateInstance::catch_up(std::shared_ptr<AggregateInstance> self) {
  static_cast<void>(self);  // stays until this ends
  while (!dropped_ && applied_ < partition_->log_end()) {
    auto step = co_await read_step(partition_, applied_, catch_up_bytes, host_.codecs,
                                   host_.environment.workers());
    if (dropped_) co_return {};
    if (!step || step->batches.empty()) {
      fail(step ? Error{Errc::corrupt, "its log ends before it should"} : step.error());
      co_return {};
    }
    for (const auto& batch : step->batches) {
      auto applied = replay(batch);
      if (applied) continue;
      fail(std::move(applied).error());
      co_return {};
    }
  }
  catching_up_ = false;
  while (!waiting_.empty() && !catching_up_) {
    auto job = std::move(waiting_.front());
    waiting_.pop_front();
    job();
  }
  follow();
  co_return {};
}

// ---- effects ----

void AggregateInstance::begin(std::vector<Effect> effects) {
  for (auto& effect : effects) {
    auto name = effect.name;
    auto& queue = running_[name];
    queue.push_back(std::make_shared<const Effect>(std::move(effect)));
    if (queue.size() == 1) run_next(name);
  }
}

void AggregateInstance::run_next(const std::string& name) {
  const auto& effect = running_.at(name).front();
  spawn_held(host_.running, host_.shard, run(shared_from_this(), effect), "effect", &scope_);
}

Task<> AggregateInstance::run(std::shared_ptr<AggregateInstance> self,
                              std::shared_ptr<const Effect> effect) {
  Backoff backoff(effect_retry_first, effect_retry_longest);
  while (true) {
    auto result = co_await host_.effects.attempt(*effect);
    if (dropped_) co_return {};
    if (!result) {
      result = EffectResult{error_code_of(result.error()), result.error().detail, nullptr, true};
    }
    if (!result->again) {
      // From the loop: a call may be under way.
      auto outcome = std::make_shared<EffectResult>(*std::move(result));
      host_.shard.post([self, effect, outcome] { self->end_effect(effect, outcome); });
      co_return {};
    }
    host_.log.debug("an effect is tried again", {{"partition", to_string(partition_->id())},
                                                 {"effect", effect->name},
                                                 {"error", std::string(name_of(result->error))},
                                                 {"detail", result->detail}});
    MR_CO_CHECK(co_await sleep(backoff.next()));
  }
}

void AggregateInstance::end_effect(std::shared_ptr<const Effect> effect,
                                   std::shared_ptr<EffectResult> result) {
  if (dropped_) return;
  when_caught_up([this, effect, result] {
    const EffectOutcome outcome{.name = effect->name,
                                .error = result->error,
                                .detail = result->detail,
                                .answer = result->answer.get()};
    const auto ended = call([&] { aggregate_->effect_done(outcome, *this); });
    if (ended == Ended::failed) return;
    if (ended == Ended::not_appended) {
      return later([this, effect, result] { end_effect(effect, result); });
    }
    const auto found = running_.find(effect->name);
    if (found == running_.end()) return;
    found->second.pop_front();
    if (found->second.empty()) {
      running_.erase(found);
    } else {
      run_next(effect->name);
    }
  });
}

}  // namespace millrace::kernel
