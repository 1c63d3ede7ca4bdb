// Manual pages as Markdown for packaging/doc/render.cmake, made from the declarations of verbs and
// options, so that they cannot say something else than the programs do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace millrace::kernel::cli {

/// A text that Markdown shows as it stands.
std::string markdown_text(std::string_view text);

/// The names of a program's pages: "millrace", and "millrace-topic" for each of its verbs.
std::vector<std::string> page_names(const CLI::App& program);

/// The page of a whole program, "millrace" in section 1. Of `others` it says SEE ALSO:
/// "millraced(8)".
std::string program_page(const CLI::App& program, int section,
                         const std::vector<std::string>& others);

/// The page of one verb of a program with all that stands below it, in section 1.
std::string verb_page(const CLI::App& program, const CLI::App& verb);

}  // namespace millrace::kernel::cli
