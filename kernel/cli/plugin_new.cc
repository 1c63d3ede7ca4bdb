#include "kernel/cli/plugin_new.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernel/cli/interrupt.h"
#include "kernel/config/text.h"
#include "kernel/host/plugin_files.h"

namespace millrace::kernel::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t name_bytes_max = 64;

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '_'; }

Result<> check_name(const std::string& name) {
  const bool fits = !name.empty() && name.size() <= name_bytes_max && is_lower(name.front()) &&
                    std::ranges::all_of(name, is_word);
  if (fits) return {};
  return Error{Errc::invalid_argument,
               concat("expected a name of at most ", name_bytes_max,
                      " lower-case letters, digits and underscores, such as word_count; found \"",
                      name, "\"")};
}

/// "word_count" -> "WordCount"
std::string class_name_of(const std::string& name) {
  std::string made;
  bool first = true;
  for (const char c : name) {
    if (c != '_') made += first && is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
    first = c == '_';
  }
  return made;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

fs::path installed_templates() { return fs::path(installed_prefix()) / "share/millrace/template"; }

std::vector<std::string> kinds_in(const fs::path& templates) {
  std::vector<std::string> kinds;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(templates, none)) {
    if (entry.is_directory(none)) kinds.push_back(entry.path().filename().string());
  }
  std::ranges::sort(kinds);
  return kinds;
}

Error io_error(const fs::path& path, const std::error_code& why) {
  return Error{Errc::io, concat(path.string(), ": ", why.message())};
}

/// Name → content.
using Files = std::map<std::string, std::string>;

Error interrupted() { return {Errc::cancelled, "interrupted; nothing is left of it"}; }

Result<Files> read_files(const fs::path& folder, const Interrupt& interrupt) {
  Files files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    std::error_code none;
    if (entry.is_directory(none)) {
      return Error{Errc::invalid_argument,
                   concat(entry.path().string(), " is a folder; a template has files alone")};
    }
    std::ifstream in(entry.path(), std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    if (!in) return Error{Errc::io, concat(entry.path().string(), ": cannot be read")};
    files.emplace(entry.path().filename().string(), std::move(text));
    if (interrupt.asked()) return interrupted();
  }
  if (failed) return io_error(folder, failed);
  return files;
}

// What a compiler, or a reader, takes for one.
std::set<std::string> words_in(const Files& files) {
  std::set<std::string> words;
  for (const auto& [name, text] : files) {
    for (auto at = text.begin(); at != text.end();) {
      const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
      const auto begin = std::find_if(at, text.end(), is_part);
      at = std::find_if_not(begin, text.end(), is_part);
      if (begin != at) words.emplace(begin, at);
    }
  }
  return words;
}

// Of `name`, and none that the template uses for something else: Operator would be its own base.
std::string free_class_name(const std::string& name, const std::string& old_class,
                            const std::set<std::string>& words) {
  auto made = class_name_of(name);
  const bool is_taken = std::ranges::any_of(words, [&](const std::string& word) {
    return word.starts_with(old_class) && words.contains(made + word.substr(old_class.size()));
  });
  return is_taken ? "My" + made : made;
}

// The template's own name is that of its source that has a test.
Result<std::string> own_name(const Files& files, const fs::path& folder) {
  constexpr std::string_view ending = "_test.cc";
  for (const auto& [name, text] : files) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return Error{Errc::not_found, concat(folder.string(), ": no template, it has no NAME_test.cc")};
}

Result<> write_file(const fs::path& to, std::string text,
                    const std::vector<std::pair<std::string, std::string>>& renamed) {
  for (const auto& [old_name, new_name] : renamed) replace_all(text, old_name, new_name);
  std::ofstream out(to, std::ios::binary);
  out << text;
  out.close();
  if (!out) return Error{Errc::io, concat(to.string(), ": cannot be written")};
  return {};
}

fs::path without_slash_at_end(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

/// A folder that goes again unless it gets its name.
class MadeFolder {
 public:
  static Result<MadeFolder> beside(const fs::path& path) {
    auto name = (path.parent_path() / ".millrace-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      return io_error(path, {errno, std::generic_category()});
    }
    return MadeFolder(name);
  }
  MadeFolder(MadeFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  MadeFolder& operator=(MadeFolder&&) = delete;
  ~MadeFolder() {
    std::error_code none;
    if (!path_.empty()) fs::remove_all(path_, none);
  }

  const fs::path& path() const noexcept { return path_; }
  Result<> move_to(const fs::path& into) {
    // As any folder that somebody makes, not one for the user alone.
    const auto mask = ::umask(0);
    ::umask(mask);
    if (::chmod(path_.c_str(), 0777 & ~mask) != 0 || ::rename(path_.c_str(), into.c_str()) != 0) {
      return io_error(into, {errno, std::generic_category()});
    }
    path_.clear();
    return {};
  }

 private:
  explicit MadeFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

}  // namespace

std::string installed_prefix() {
  std::error_code none;
  const auto program = fs::read_symlink("/proc/self/exe", none);
  return program.parent_path().parent_path().string();
}

namespace {

Result<std::string> make_folder(const NewPlugin& wanted, const Interrupt& interrupt) {
  MR_CHECK(check_name(wanted.name));
  const fs::path templates =
      wanted.templates.empty() ? installed_templates() : fs::path(wanted.templates);
  const auto kinds = kinds_in(templates);
  if (kinds.empty()) {
    return Error{Errc::not_found,
                 concat("no templates in ", templates.string(),
                        "; install the SDK (component sdk), or name its folder with --templates")};
  }
  const auto kind = kind_meant(wanted.kind);
  if (!contains(kinds, kind)) {
    return Error{Errc::invalid_argument,
                 concat("no template of kind ", wanted.kind, nearest_hint(wanted.kind, kinds),
                        "; there are: ", joined(kinds))};
  }
  const auto from = templates / kind;
  auto given = wanted.into.empty() ? wanted.name : wanted.into;
  const auto into = without_slash_at_end(given);
  std::error_code none;
  if (fs::exists(fs::symlink_status(into, none))) {
    return Error{Errc::conflict, concat(into.string(), " is there already; choose another name")};
  }

  MR_TRY(const auto files, read_files(from, interrupt));
  MR_TRY(const auto old_name, own_name(files, from));
  const auto old_class = class_name_of(old_name);
  const std::vector<std::pair<std::string, std::string>> renamed{
      {old_name, wanted.name},
      {old_class, free_class_name(wanted.name, old_class, words_in(files))}};

  // Under its name there is all of it, or nothing.
  MR_TRY(auto made, MadeFolder::beside(into));
  for (const auto& [old_file, text] : files) {
    auto file = old_file;
    replace_all(file, old_name, wanted.name);
    MR_CHECK(write_file(made.path() / file, text, renamed));
    if (interrupt.asked()) return interrupted();
  }
  MR_CHECK(made.move_to(into));
  return given;
}

}  // namespace

Result<std::string> make_plugin_folder(const NewPlugin& wanted) {
  const Interrupt interrupt;
  auto made = make_folder(wanted, interrupt);
  interrupt.finish();
  return made;
}

}  // namespace millrace::kernel::cli
