#include "sim_key_tree.h"

#include <set>

namespace millrace::testing {

namespace {

std::string_view parent_of(std::string_view key) {
  const auto slash = key.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
}

std::string_view without_slash(std::string_view prefix) {
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  return prefix;
}

template <class Keys>
bool any_below(const Keys& keys, std::string_view key) {
  const auto below = std::string(key) + '/';
  const auto at = keys.lower_bound(below);
  return at != keys.end() && at->first.starts_with(below);
}

}  // namespace

Result<Versioned> SimKeyTree::get(std::string_view key) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return Error{Errc::not_found, "no key " + std::string(key)};
  const auto& [value, version, owner] = found->second;
  return Versioned{.value = value, .version = version, .ephemeral = owner != 0};
}

std::vector<std::string> SimKeyTree::children(std::string_view prefix) const {
  const auto below = std::string(without_slash(prefix)) + '/';
  std::set<std::string> names;
  for (auto at = keys_.lower_bound(below); at != keys_.end() && at->first.starts_with(below);
       ++at) {
    const auto rest = std::string_view(at->first).substr(below.size());
    names.emplace(rest.substr(0, rest.find('/')));
  }
  return {names.begin(), names.end()};
}

Result<Version> SimKeyTree::apply(Keys& keys, const Write& write, std::int64_t session) {
  const auto found = keys.find(write.key);
  const bool there = found != keys.end();
  if (write.expected != any_version) {
    const bool as_expected = write.expected == must_not_exist
                                 ? !there
                                 : there && found->second.version == write.expected;
    if (!as_expected) return Error{Errc::conflict, write.key + ": another version is there"};
  }
  if (!write.value) {
    if (!there) return Error{Errc::not_found, "no key " + write.key};
    const auto last = found->second.version;
    keys.erase(found);
    return last;
  }
  if (write.ephemeral && any_below(keys, write.key)) {
    return Error{Errc::invalid_argument, write.key + ": cannot go with a lease"};
  }
  for (auto above = parent_of(write.key); !above.empty(); above = parent_of(above)) {
    const auto parent = keys.find(above);
    if (parent != keys.end() && parent->second.owner != 0) {
      return Error{Errc::invalid_argument,
                   write.key + ": nothing can be below " + std::string(above)};
    }
  }
  const auto owner = write.ephemeral ? session : 0;
  const bool anew = !there || found->second.owner != owner;
  const Version version = anew ? 0 : found->second.version + 1;
  keys.insert_or_assign(write.key, Key{*write.value, version, owner});
  return version;
}

Result<std::vector<Version>> SimKeyTree::commit(const std::vector<Write>& writes,
                                                std::int64_t session) {
  std::size_t bytes = 0;
  for (const auto& write : writes) bytes += commit_bytes_of(write);
  if (bytes > commit_bytes_max) {
    return Error{Errc::too_large, "a commit of " + std::to_string(bytes) + " bytes"};
  }
  auto next = keys_;
  std::vector<Version> versions;
  for (const auto& write : writes) {
    MR_TRY(const auto version, apply(next, write, session));
    versions.push_back(version);
  }
  keys_ = std::move(next);
  ++revision_;
  for (const auto& write : writes) touch(write.key);
  return versions;
}

void SimKeyTree::touch(std::string_view key) {
  for (auto at = key; !at.empty(); at = parent_of(at)) touched_[std::string(at)] = revision_;
  touched_[""] = revision_;
}

Seen SimKeyTree::seen(std::string_view prefix) const {
  const auto found = touched_.find(without_slash(prefix));
  return {found == touched_.end() ? 0 : found->second};
}

void SimKeyTree::remove_all_of(std::int64_t session) {
  ++revision_;
  for (auto at = keys_.begin(); at != keys_.end();) {
    if (at->second.owner != session) {
      ++at;
      continue;
    }
    touch(at->first);
    at = keys_.erase(at);
  }
}

}  // namespace millrace::testing
