#include "commit_plan.h"

#include <algorithm>
#include <set>

#include "connect.h"

namespace millrace::zookeeper {

namespace {

constexpr auto folders_kept_depth = 2;

std::string words_of(Version expected) {
  return expected == must_not_exist ? "no such key" : "version " + std::to_string(expected);
}

class Planner {
 public:
  Planner(KnownNodes known, std::int64_t session) : nodes_(std::move(known)), session_(session) {}

  Result<> add(const Write& write) {
    if (!valid_path(write.key)) {
      return Error{Errc::invalid_argument, "'" + write.key + "' is no path of a key"};
    }
    auto& node = nodes_[write.key];
    const bool is_key = node.there && !node.folder;
    if (write.expected != any_version) {
      const bool as_expected =
          write.expected == must_not_exist ? !is_key : is_key && node.version == write.expected;
      if (!as_expected) {
        return Error{Errc::conflict, write.key + ": expected " + words_of(write.expected) +
                                         ", found " +
                                         (is_key ? words_of(node.version) : "no such key")};
      }
    }
    if (!write.value) return remove(write.key, node, is_key);
    return put(write, node);
  }

  CommitPlan take() && { return std::move(plan_); }

 private:
  Result<> remove(const std::string& key, Known& node, bool is_key) {
    if (!is_key) return Error{Errc::not_found, "no key " + key};
    plan_.versions.push_back(node.version);
    if (node.children > 0) {
      make_folder(key, node);
      return {};
    }
    erase(key, node);
    prune(parent_of(key));
    return {};
  }

  Result<> put(const Write& write, Known& node) {
    const auto owner = write.ephemeral ? session_ : 0;
    const bool anew = node.there && node.owner != owner;
    if (write.ephemeral && node.children > 0) {
      return Error{Errc::invalid_argument,
                   write.key + ": a key with others below it cannot go with a lease"};
    }
    if (anew) erase(write.key, node);
    if (!node.there) {
      MR_CHECK(make_parents(write.key));
      create(write.key, node, write.value, owner);
    } else {
      step({.kind = Op::Kind::set,
            .path = write.key,
            .value = write.value,
            .version = node.version});
      ++node.version;
      node.folder = false;
    }
    plan_.versions.push_back(node.version);
    return {};
  }

  // Top down.
  Result<> make_parents(std::string_view key) {
    const auto parent = parent_of(key);
    if (parent.empty()) return {};
    auto& node = nodes_[std::string(parent)];
    if (node.there) {
      if (node.owner == 0) return {};
      return Error{Errc::invalid_argument, std::string(key) + ": nothing can be below " +
                                               std::string(parent) + ", which goes with a lease"};
    }
    MR_CHECK(make_parents(parent));
    create(std::string(parent), node, std::nullopt, 0);
    return {};
  }

  void create(const std::string& path, Known& node, const std::optional<std::string>& value,
              std::int64_t owner) {
    step({.kind = Op::Kind::create, .path = path, .value = value, .ephemeral = owner != 0});
    node = {.there = true, .folder = !value, .owner = owner};
    count_child(path, +1);
  }
  void make_folder(const std::string& path, Known& node) {
    step({.kind = Op::Kind::set, .path = path, .value = std::nullopt, .version = node.version});
    ++node.version;
    node.folder = true;
  }
  void erase(const std::string& path, Known& node) {
    step({.kind = Op::Kind::remove, .path = path, .version = node.version});
    node = {};
    count_child(path, -1);
  }
  void count_child(std::string_view path, int more) {
    const auto parent = parent_of(path);
    if (!parent.empty()) nodes_[std::string(parent)].children += more;
  }
  void prune(std::string_view path) {
    while (std::ranges::count(path, '/') > folders_kept_depth) {
      auto& node = nodes_[std::string(path)];
      if (!node.there || !node.folder || node.children > 0) return;
      erase(std::string(path), node);
      path = parent_of(path);
    }
  }
  void step(Op op) {
    plan_.bytes += bytes_of(op);
    plan_.ops.push_back(std::move(op));
  }

  KnownNodes nodes_;
  std::int64_t session_;
  CommitPlan plan_;
};

}  // namespace

std::vector<std::string> unknown_nodes(const std::vector<Write>& writes, const KnownNodes& known) {
  std::set<std::string, std::less<>> paths;
  for (const auto& write : writes) {
    if (!valid_path(write.key)) continue;  // the plan says so
    const auto key = known.find(write.key);
    if (key == known.end()) {
      paths.emplace(write.key);
      continue;
    }
    const bool lasts = key->second.there && key->second.owner == 0;
    if (lasts && write.value && !write.ephemeral) continue;
    for (auto at = parent_of(write.key); !at.empty(); at = parent_of(at)) {
      if (!known.contains(at)) paths.emplace(at);
    }
  }
  return {paths.begin(), paths.end()};
}

Result<CommitPlan> plan_commit(const std::vector<Write>& writes, KnownNodes known,
                               std::int64_t session) {
  Planner planner(std::move(known), session);
  for (const auto& write : writes) MR_CHECK(planner.add(write));
  return std::move(planner).take();
}

}  // namespace millrace::zookeeper
