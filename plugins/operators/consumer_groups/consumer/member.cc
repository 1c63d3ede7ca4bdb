#include "member.h"

#include <algorithm>

namespace millrace::consumer_groups {

bool operator==(const ClassicMember& a, const ClassicMember& b) {
  return a.session_timeout_ms == b.session_timeout_ms &&
         std::ranges::equal(a.protocols, b.protocols,
                            [](const GroupProtocol& x, const GroupProtocol& y) {
                              return x.name == y.name && x.metadata.text() == y.metadata.text();
                            });
}

}  // namespace millrace::consumer_groups
