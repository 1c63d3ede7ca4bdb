// What a changelog says of positions, also one that was written before they knew their topic.
#include <gtest/gtest.h>

#include <millrace/bytes.h>

#include "stream_fixture.h"

namespace millrace::kernel {
namespace {

constexpr Uuid topic_id{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

SourcePosition position_of(const TestTurns& turns) {
  return turns.state->positions().find("in")->second;
}

TEST(KeyedStateLogTest, APositionKnowsItsTopic) {
  TestTurns turns({TestStep(pass)});
  turns.state->set_position("in", {.next = {0}, .topic_id = topic_id});
  turns.send({"a", "b"});
  turns.turn();
  turns.begin_anew();
  EXPECT_EQ(position_of(turns), (SourcePosition{{2}, topic_id}));
  const auto snapshot = turns.state->snapshot(Offset{9});
  turns.changelog.clear();
  turns.begin_anew();
  ASSERT_TRUE(turns.state->restore(snapshot, Offset{9}));
  EXPECT_EQ(position_of(turns), (SourcePosition{{2}, topic_id}));
}

TEST(KeyedStateLogTest, AnOldPositionIsOfATopicThatIsNotKnown) {
  TestTurns turns({TestStep(pass)});
  SourcePositions positions{{"in", {.next = {1}, .topic_id = topic_id}}};
  std::string value(2 * sizeof(std::int64_t), '\0');
  store_be(reinterpret_cast<std::byte*>(value.data()), std::int64_t{7});
  const auto apply = [&](const std::string& text) {
    return KeyedStateLog::apply(as_bytes("p\2in"), as_bytes(text), turns.state->chain(), positions);
  };
  ASSERT_TRUE(apply(value));
  EXPECT_EQ(positions["in"], (SourcePosition{{7}, {}}));
  EXPECT_FALSE(apply(value + "x"));
}

}  // namespace
}  // namespace millrace::kernel
