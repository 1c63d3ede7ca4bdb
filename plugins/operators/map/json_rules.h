// Rules, applied to a JSON text while it is read.
#pragma once

#include <string>

#include <millrace/buffer.h>
#include <millrace/result.h>

#include "rules.h"

/// The text that `rules` make of `value`; what they do not touch stays as it was written, but for
/// spaces. Errc::corrupt: it is not JSON. Errc::invalid_argument: neither an object nor an array.
millrace::Result<std::string> apply_rules(const Rules& rules, millrace::Bytes value);
