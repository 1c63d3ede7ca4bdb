// The values that words are completed with: settings from their declarations, plugins from their
// files, topics and groups from the broker.
#pragma once

#include <span>
#include <string>

#include "kernel/cli/completion.h"

namespace millrace::kernel::cli {

/// Asks the broker, or its admin API, that the words before the cursor name. Nothing where nobody
/// answers within a second; who asked is left behind then, and ends with the process.  [any thread]
std::vector<Candidate> known_values(ValueKind kind, const TypedWords& typed,
                                    std::string_view prefix);

/// `millrace complete -- WORDS...`: prints a line "none", "files" or "folders", what names the
/// shell adds of its own, then a line "WORD<tab>WHAT IT MEANS" for each that can stand at the
/// cursor. Says nothing of what went wrong, and never returns: whom it asked is not waited for.
/// [start-up]
[[noreturn]] void print_completions(std::span<char* const> words);

}  // namespace millrace::kernel::cli
