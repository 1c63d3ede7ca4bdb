#include "tree.h"

#include <set>

namespace millrace::standalone {

namespace {

std::string_view parent_of(std::string_view key) {
  const auto slash = key.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
}

Error no_such_key(std::string_view key) {
  return Error{Errc::not_found, "no key " + std::string(key)};
}

std::string expectation(Version expected) {
  return expected == must_not_exist ? "no such key" : "version " + std::to_string(expected);
}

}  // namespace

Result<Versioned> Tree::get(std::string_view key) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return no_such_key(key);
  return found->second;
}

std::vector<std::string> Tree::children(std::string_view prefix) const {
  // Not in the order of keys: of "a", "a-" and "a/x", the first and the last are one child.
  std::set<std::string> names;
  auto below = std::string(prefix);
  if (!below.ends_with('/')) below += '/';
  auto at = keys_.lower_bound(below);
  while (at != keys_.end() && at->first.starts_with(below)) {
    const auto end = at->first.find('/', below.size());
    auto name = at->first.substr(below.size(), end - below.size());
    // Past what is below this child: '0' follows '/'.
    at = end == std::string::npos ? std::next(at) : keys_.lower_bound(below + name + '0');
    names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

// What goes with a lease has nothing below it.
Result<> Tree::check_place(const Write& write) const {
  if (write.ephemeral && !children(write.key).empty()) {
    return Error{Errc::invalid_argument,
                 write.key + ": a key with others below it cannot go with a lease"};
  }
  for (auto above = parent_of(write.key); !above.empty(); above = parent_of(above)) {
    const auto found = keys_.find(above);
    if (found == keys_.end() || !found->second.ephemeral) continue;
    return Error{Errc::invalid_argument, write.key + ": nothing can be below " +
                                             std::string(above) + ", which goes with a lease"};
  }
  return {};
}

Result<Tree::Planned> Tree::plan(const std::vector<Write>& writes) const {
  Planned planned;
  std::map<std::string, std::optional<Versioned>, std::less<>> changed;
  for (const auto& write : writes) {
    auto before = changed.find(write.key);
    if (before == changed.end()) {
      const auto found = keys_.find(write.key);
      before = changed
                   .emplace(write.key, found == keys_.end() ? std::optional<Versioned>()
                                                            : std::optional(found->second))
                   .first;
    }
    auto& now = before->second;
    if (write.expected != any_version) {
      const bool as_expected =
          write.expected == must_not_exist ? !now : now && now->version == write.expected;
      if (!as_expected) {
        const auto found = now ? "version " + std::to_string(now->version) : "no such key";
        return Error{Errc::conflict,
                     write.key + ": expected " + expectation(write.expected) + ", found " + found};
      }
    }
    if (!write.value) {
      if (!now) return no_such_key(write.key);
      planned.versions.push_back(now->version);
      now.reset();
      continue;
    }
    MR_CHECK(check_place(write));
    const bool anew = !now || now->ephemeral != write.ephemeral;
    const Version version = anew ? 0 : now->version + 1;
    now = Versioned{*write.value, version, write.ephemeral};
    planned.versions.push_back(version);
  }
  for (auto& [key, now] : changed) planned.changes.push_back({key, std::move(now)});
  return planned;
}

void Tree::apply(const std::vector<Change>& changes) {
  if (changes.empty()) return;
  ++revision_;
  for (const auto& change : changes) {
    const auto found = keys_.find(change.key);
    const bool was = found != keys_.end();
    if (change.now) {
      keys_.insert_or_assign(change.key, *change.now);
    } else if (was) {
      keys_.erase(found);
    }
    const bool is = change.now.has_value();
    if (was || is) touch(change.key, (is ? 1 : 0) - (was ? 1 : 0));
  }
}

void Tree::touch(std::string_view key, std::int64_t keys_added) {
  for (auto at = key; !at.empty(); at = parent_of(at)) {
    auto& folder = folders_[std::string(at)];
    folder.revision = revision_;
    folder.keys += keys_added;
    if (folder.keys == 0) folders_.erase(folders_.find(at));
  }
  root_revision_ = revision_;
}

Seen Tree::seen(std::string_view prefix) const {
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  for (auto at = prefix; !at.empty(); at = parent_of(at)) {
    const auto found = folders_.find(at);
    if (found != folders_.end()) return {found->second.revision};
  }
  return {root_revision_};
}

std::vector<Change> Tree::persistent() const {
  std::vector<Change> all;
  for (const auto& [key, value] : keys_) {
    if (!value.ephemeral) all.push_back({key, value});
  }
  return all;
}

}  // namespace millrace::standalone
