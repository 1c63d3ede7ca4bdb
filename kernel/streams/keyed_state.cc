#include "kernel/streams/keyed_state.h"

#include <array>
#include <ranges>

#include <millrace/bytes.h>

namespace millrace::kernel {

namespace {

// What an entry takes beside its key and value: the node, its hash, its place in the table, and
// that a quarter to a half of those is empty.
constexpr std::int64_t entry_bytes = 128;

std::int64_t size_of(std::string_view text) noexcept {
  return static_cast<std::int64_t>(text.size());
}

std::int64_t time_of(std::string_view value) noexcept {
  return load_be<std::int64_t>(as_bytes(value).data());
}

}  // namespace

KeyedStore::~KeyedStore() { memory_.give_back(bytes_); }

void KeyedStore::charge(std::int64_t bytes) {
  if (bytes > 0 && !memory_.take(bytes)) {
    refused_ = true;
    throw StreamMemoryExceeded("state and pending output of the stream exceed its memory of " +
                               std::to_string(memory_.bytes_max()) + " bytes");
  }
  if (bytes < 0) memory_.give_back(-bytes);
  bytes_ += bytes;
}

void KeyedStore::refund(std::int64_t bytes) noexcept {
  memory_.give_back(bytes);
  bytes_ -= bytes;
}

std::optional<Bytes> KeyedStore::get(Bytes key) const {
  const auto* node = nodes_.find(as_text(key));
  if (node == nullptr) return std::nullopt;
  return value_of(*node);
}

// The first change of an entry by a record keeps what was there.
void KeyedStore::save(Node& node) {
  if (node.saved) return;
  undo_.push_back({&node, node.value, node.changed});
  node.saved = true;
  if (node.changed) return;
  changed_.push_back(&node);
  node.changed = true;
}

void KeyedStore::put(Bytes key, Bytes value) {
  const auto text = as_text(value);
  auto* node = nodes_.find(as_text(key));
  if (node == nullptr) {
    charge(entry_bytes + size_of(as_text(key)) + size_of(text));
    node = &nodes_.add(as_text(key));
    save(*node);
    node->value.emplace(text);
    ++size_;
    return;
  }
  charge(size_of(text) - (node->value ? size_of(*node->value) : -entry_bytes - size_of(node->key)));
  save(*node);
  if (!node->value) {
    node->value.emplace();
    ++size_;
  }
  node->value->assign(text);
}

void KeyedStore::erase(Bytes key) {
  auto* node = nodes_.find(as_text(key));
  if (node == nullptr || !node->value) return;
  save(*node);
  refund(entry_bytes + size_of(node->key) + size_of(*node->value));
  node->value.reset();
  --size_;
}

void KeyedStore::for_each(const std::function<bool(Bytes key, Bytes value)>& each) const {
  nodes_.for_each([&each](const Node& node) {
    const auto value = value_of(node);
    return !value || each(as_bytes(node.key), *value);
  });
}

void KeyedStore::keep() {
  for (const auto& saved : undo_) saved.node->saved = false;
  undo_.clear();
}

void KeyedStore::undo() {
  for (auto& [node, before, changed] : undo_ | std::views::reverse) {
    const auto weight = [node](const std::optional<std::string>& value) {
      return value ? entry_bytes + size_of(node->key) + size_of(*value) : 0;
    };
    // Taken back in full, also where that is beyond the limit for a moment.
    const auto grown = weight(before) - weight(node->value);
    memory_.give_back(-grown);
    bytes_ += grown;
    size_ += static_cast<std::size_t>(before.has_value());
    size_ -= static_cast<std::size_t>(node->value.has_value());
    node->value = std::move(before);
    node->saved = false;
    node->changed = changed;
    if (changed) continue;
    // In reverse: those that this record has added are at the end, in the same order.
    MR_ASSERT(changed_.back() == node);
    changed_.pop_back();
    if (!node->value) nodes_.erase(*node);
  }
  undo_.clear();
}

// A million of them are read at a restart: no more than has to be done for each.
void KeyedStore::restore(Bytes key, std::optional<Bytes> value) {
  auto* node = nodes_.find(as_text(key));
  if (node != nullptr) {
    const auto before = size_of(*node->value);
    if (value) {
      charge(size_of(as_text(*value)) - before);
      node->value->assign(as_text(*value));
    } else {
      refund(entry_bytes + size_of(node->key) + before);
      nodes_.erase(*node);
      --size_;
    }
  } else if (value) {
    charge(entry_bytes + size_of(as_text(key)) + size_of(as_text(*value)));
    nodes_.add(as_text(key)).value.emplace(as_text(*value));
    ++size_;
  }
}

void StepTimers::set(Bytes name, Timestamp at) {
  std::array<std::byte, sizeof at.ms> time{};
  store_be(time.data(), at.ms);
  times_.put(name, time);
}

std::vector<StepTimers::Due> StepTimers::due(Timestamp stream_time) const {
  std::vector<Due> due;
  for (const auto& timer : by_time_) {
    if (timer.first > stream_time.ms) break;
    due.push_back(timer);
  }
  return due;
}

bool StepTimers::take(std::string_view name, std::int64_t time) {
  const auto set = times_.get(as_bytes(name));
  if (!set || time_of(as_text(*set)) != time) return false;
  times_.erase(as_bytes(name));
  return true;
}

// What is due is looked for between records: only then the order has to be right.
void StepTimers::keep() {
  times_.for_each_undoable([this](const std::string& name, const std::optional<std::string>& before,
                                  const std::optional<std::string>& now) {
    if (before) by_time_.erase({time_of(*before), name});
    if (now) by_time_.emplace(time_of(*now), name);
  });
  times_.keep();
}

void StepTimers::restore(Bytes name, std::optional<Bytes> time) {
  if (const auto before = times_.get(name)) {
    by_time_.erase({time_of(as_text(*before)), std::string(as_text(name))});
  }
  if (time) by_time_.emplace(time_of(as_text(*time)), std::string(as_text(name)));
  times_.restore(name, time);
}

}  // namespace millrace::kernel
