// Whether a live answer says what the recorded one said.
//
// Equal means: the same fields with the same values, where
//   * ids of a run (topic, producer, fetch session, member, cluster) may be others, as long as one
//     always stands for the other (bindings.h); so may generations and epochs of a group, as long
//     as they also come in the same order;
//   * hosts, ports, throttle times, append times and a release's features are not looked at; epochs
//     of leaders and texts of error messages are there in both or in neither (an explanation where
//     Kafka gives none does no harm);
//   * elements with a name, an index or an id are paired by it, in whatever order they come, and
//     members by what their ids stand for;
//   * of ApiVersions, the versions that both offer must overlap;
//   * records are compared opened: format, offsets, timestamps, keys, values, headers, producers.
//     How they were compressed is the broker's choice, and an answer may go on further than the
//     recorded one (Kafka cuts a converted answer at the size that it had before);
//   * what belongs to APIs that are not served yet may be missing: internal topics, and resources
//     that are groups, clients' metrics or loggers; groups of share consumers and of streams;
//   * what takes Kafka a while may be done at once: a topic that a Metadata request creates is
//     there, a coordinator that was still starting answers;
//   * a setting of the whole broker may come from its file or from its cluster, and there may be
//     more settings, which other releases have.
#pragma once

#include <string>
#include <vector>

#include <boost/json.hpp>

#include "bindings.h"
#include "session.h"

namespace millrace::wire {

struct Difference {
  std::string path;  ///< "topics[orders].partitions[0].errorCode"
  std::string expected;
  std::string found;
};

/// `request` is the recorded one; both bodies are as answer_body() gives them. Learns ids.
std::vector<Difference> compare_answers(const Event& request, const boost::json::object& recorded,
                                        const boost::json::object& live, Bindings& bindings);

}  // namespace millrace::wire
