#include "bindings.h"

#include <iterator>

namespace millrace::wire {

namespace {

bool is_none(IdKind kind, const std::string& id) {
  switch (kind) {
    case IdKind::topic: return id == to_string(Uuid{});
    case IdKind::producer: return id == "-1";
    case IdKind::fetch_session: return id == "0";
    case IdKind::member:
    case IdKind::cluster: return id.empty() || id == "null";
  }
  return false;
}

}  // namespace

std::optional<IdKind> Bindings::kind_of(std::string_view field) {
  if (field == "topicId") return IdKind::topic;
  if (field == "producerId") return IdKind::producer;
  if (field == "sessionId") return IdKind::fetch_session;
  if (field == "memberId" || field == "leader") return IdKind::member;
  if (field == "clusterId") return IdKind::cluster;
  return std::nullopt;
}

bool Bindings::bind(IdKind kind, const std::string& recorded, const std::string& live) {
  if (is_none(kind, recorded) || is_none(kind, live)) return recorded == live;
  const auto& bound_live = live_[kind].try_emplace(recorded, live).first->second;
  const auto& bound_recorded = recorded_[kind].try_emplace(live, recorded).first->second;
  return bound_live == live && bound_recorded == recorded;
}

bool Bindings::bind_epoch(const std::string& group, std::int64_t recorded, std::int64_t live) {
  if (recorded <= 0 || live <= 0) return recorded == live;
  auto& epochs = epochs_[group];
  const auto at = epochs.try_emplace(recorded, live).first;
  const auto after = std::next(at);
  const bool above = at == epochs.begin() || std::prev(at)->second < live;
  const bool below = after == epochs.end() || after->second > live;
  return at->second == live && above && below;
}

std::int64_t Bindings::live_epoch(const std::string& group, std::int64_t recorded) const {
  const auto epochs = epochs_.find(group);
  if (epochs == epochs_.end()) return recorded;
  const auto found = epochs->second.find(recorded);
  return found == epochs->second.end() ? recorded : found->second;
}

std::string Bindings::live(IdKind kind, const std::string& recorded) const {
  const auto of_kind = live_.find(kind);
  if (of_kind == live_.end()) return recorded;
  const auto found = of_kind->second.find(recorded);
  return found == of_kind->second.end() ? recorded : found->second;
}

}  // namespace millrace::wire
