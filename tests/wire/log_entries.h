// A log, or the records of a message, in the JSON form of the golden data: a line for each batch,
// then one for each of its records (tests/golden/README.md, segments/).
#pragma once

#include <boost/json.hpp>

#include <millrace/batch.h>

namespace millrace::wire {

/// The whole entries of `log`, V0, V1 or V2, opened. `cut_tail` permits the last one to be
/// incomplete, as in the answer to an old fetch.
Result<boost::json::array> describe_entries(const Buffer& log, const Codecs& codecs,
                                            bool cut_tail = false);

}  // namespace millrace::wire
