#include "plugins/transport/kafka/answer_queue.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kafka_transport {
namespace {

std::string text(const Payload& payload) { return std::string(payload.flatten()->text()); }
Payload answer(std::string_view words) { return Payload(Buffer::copy_of(words)); }

TEST(AnswerQueueTest, GivesAnswersInTheOrderOfRequests) {
  AnswerQueue queue;
  const auto a = queue.reserve();
  const auto b = queue.reserve();
  const auto c = queue.reserve();
  queue.put(c, answer("c"));
  queue.put(b, answer("b"));
  EXPECT_TRUE(queue.take_ready().empty());
  EXPECT_EQ(queue.size(), 3);
  queue.put(a, answer("a"));
  EXPECT_EQ(text(queue.take_ready()), "abc");
  EXPECT_TRUE(queue.empty());
}

TEST(AnswerQueueTest, TakesOnlyWhatIsReadyAtTheFront) {
  AnswerQueue queue;
  const auto a = queue.reserve();
  const auto b = queue.reserve();
  const auto c = queue.reserve();
  queue.put(a, answer("a"));
  queue.put(c, answer("ccc"));
  EXPECT_EQ(queue.bytes(), 4);
  EXPECT_EQ(text(queue.take_ready()), "a");
  EXPECT_EQ(queue.bytes(), 3);
  queue.put(b, answer("b"));
  EXPECT_EQ(text(queue.take_ready()), "bccc");
  EXPECT_EQ(queue.bytes(), 0);
}

TEST(AnswerQueueTest, AnEmptyAnswerHoldsNobodyUp) {
  AnswerQueue queue;
  const auto silent = queue.reserve();
  const auto spoken = queue.reserve();
  queue.put(spoken, answer("x"));
  queue.put(silent, Payload());
  EXPECT_EQ(text(queue.take_ready()), "x");
  EXPECT_TRUE(queue.empty());
}

TEST(AnswerQueueTest, CutDropsThatRequestAndThoseAfterIt) {
  AnswerQueue queue;
  const auto a = queue.reserve();
  const auto b = queue.reserve();
  const auto c = queue.reserve();
  queue.put(c, answer("c"));
  queue.cut(b);
  EXPECT_EQ(queue.size(), 1);
  EXPECT_EQ(queue.bytes(), 0);
  queue.put(b, answer("late"));
  queue.put(a, answer("a"));
  EXPECT_EQ(text(queue.take_ready()), "a");
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace millrace::kafka_transport
