#include "plugins/transport/kafka/answer_queue.h"

#include <algorithm>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/environment.h>

namespace millrace::kafka_transport {
namespace {

std::string take(AnswerQueue& queue, std::uint64_t memory_bytes_max = 1 << 20) {
  return std::string(queue.take_ready(memory_bytes_max).answers.flatten()->text());
}
Payload answer(std::string_view words) { return Payload(Buffer::copy_of(words)); }

TEST(AnswerQueueTest, GivesAnswersInTheOrderOfRequests) {
  AnswerQueue queue;
  const auto a = queue.reserve();
  const auto b = queue.reserve();
  const auto c = queue.reserve();
  queue.put(c, answer("c"));
  queue.put(b, answer("b"));
  EXPECT_TRUE(take(queue).empty());
  EXPECT_EQ(queue.size(), 3);
  queue.put(a, answer("a"));
  EXPECT_EQ(take(queue), "abc");
  EXPECT_TRUE(queue.empty());
}

TEST(AnswerQueueTest, TakesOnlyWhatIsReadyAtTheFront) {
  AnswerQueue queue;
  const auto a = queue.reserve();
  const auto b = queue.reserve();
  const auto c = queue.reserve();
  queue.put(a, answer("a"));
  queue.put(c, answer("ccc"));
  EXPECT_EQ(queue.memory_bytes(), 4);
  EXPECT_EQ(take(queue), "a");
  EXPECT_EQ(queue.memory_bytes(), 3);
  queue.put(b, answer("b"));
  EXPECT_EQ(take(queue), "bccc");
  EXPECT_EQ(queue.memory_bytes(), 0);
}

TEST(AnswerQueueTest, AnEmptyAnswerHoldsNobodyUp) {
  AnswerQueue queue;
  const auto silent = queue.reserve();
  const auto spoken = queue.reserve();
  queue.put(spoken, answer("x"));
  queue.put(silent, Payload());
  EXPECT_EQ(take(queue), "x");
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
  EXPECT_EQ(queue.memory_bytes(), 0);
  queue.put(b, answer("late"));
  queue.put(a, answer("a"));
  EXPECT_EQ(take(queue), "a");
  EXPECT_TRUE(queue.empty());
}

TEST(AnswerQueueTest, GivesNoMoreThanMayBeSentAtOnce) {
  AnswerQueue queue;
  for (const auto* words : {"aaaa", "bb", "c", "d"}) queue.put(queue.reserve(), answer(words));
  EXPECT_EQ(take(queue, 3), "aaaa");
  EXPECT_EQ(queue.memory_bytes(), 4);
  EXPECT_EQ(take(queue, 3), "bbc");
  EXPECT_EQ(take(queue, 3), "d");
}

class FileOfZeros final : public File {
 public:
  Result<std::size_t> read_at(std::uint64_t, MutableBytes into) const override {
    std::ranges::fill(into, std::byte{});
    return into.size();
  }
  Result<> write_at(std::uint64_t, std::span<const Bytes>) override { return {}; }
  Result<> truncate(std::uint64_t) override { return {}; }
  Result<> sync() override { return {}; }
  Result<std::uint64_t> size() const override { return 1 << 20; }
  bool resident(std::uint64_t, std::uint64_t) const noexcept override { return true; }
  const std::string& path() const noexcept override { return path_; }

 private:
  std::string path_ = "zeros";
};

TEST(AnswerQueueTest, RangesOfFilesCostNoMemory) {
  AnswerQueue queue;
  Payload records = answer("head");
  records.add(FileRange{std::make_shared<FileOfZeros>(), 0, 1000});
  queue.put(queue.reserve(), std::move(records));
  EXPECT_EQ(queue.memory_bytes(), 4);
  const auto ready = queue.take_ready(1);
  EXPECT_EQ(ready.memory_bytes, 4);
  EXPECT_EQ(ready.answers.size(), 1004);
}

}  // namespace
}  // namespace millrace::kafka_transport
