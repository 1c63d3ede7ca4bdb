// All manual pages that are made from declarations: packaging/doc/render_manual.cmake asks for
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/result.h>

namespace millrace::kernel::cli {

struct PageName {
  std::string name;
  int section;
};

/// millrace, a page for each of its verbs, millraced, millrace.toml.
std::vector<PageName> manual_pages();
/// One of them as Markdown.
Result<std::string> manual_page(std::string_view name);

/// `millrace manual [PAGE]`: the page, or a line "NAME SECTION" for each that there is.
Result<> print_manual(std::string_view page);

}  // namespace millrace::kernel::cli
