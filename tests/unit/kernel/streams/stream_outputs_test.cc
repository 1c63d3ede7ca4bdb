// Outputs by partition: which one, in batches of what size, with which sequences, and taken back.
#include "stream_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/partitioner.h>

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StreamOutputsTest : public testing::Test {
 protected:
  StreamOutputsTest() {
    outputs_.set_producer(5, 1);
    outputs_.set_partitions("t", 4);
  }

  void add(std::optional<std::string> key, const std::string& value, std::int32_t source = 0) {
    std::optional<Bytes> bytes;
    if (key) bytes = as_bytes(*key);
    outputs_.add(*outputs_.find("t"), source, {bytes, as_bytes(value), {1}, {}, {}});
  }

  StreamMemory memory_{1 << 28};
  StreamOutputs outputs_{memory_};
};

TEST_F(StreamOutputsTest, AKeyChoosesAsKafkasProducersDo) {
  for (const auto* key : {"a", "b", "key-17"}) add(key, key);
  for (const auto& output : outputs_.take()) {
    for (const auto& value : values_in(output.batches.at(0))) {
      EXPECT_EQ(output.to.partition, kafka::partition_of(as_bytes(value), 4));
    }
  }
}

TEST_F(StreamOutputsTest, WithoutAKeyThePartitionIsThatOfTheSource) {
  add({}, "x", 3);
  add({}, "y", 6);
  const auto outputs = outputs_.take();
  ASSERT_EQ(outputs.size(), 2);
  EXPECT_EQ(outputs[0].to, (TopicPartition{"t", 3}));
  EXPECT_EQ(outputs[1].to, (TopicPartition{"t", 2}));
}

TEST_F(StreamOutputsTest, SequencesGoOnOverBatchesAndTurns) {
  const std::string large(300'000, 'x');
  for (int i = 0; i < 5; ++i) add({}, large);
  outputs_.keep();
  auto outputs = outputs_.take();
  ASSERT_EQ(outputs.size(), 1);
  std::vector<std::int32_t> sequences;
  for (const auto& batch : outputs[0].batches) {
    const auto header = read_batch_header(batch).value();
    EXPECT_EQ(header.producer_id, 5);
    EXPECT_EQ(header.producer_epoch, 1);
    EXPECT_LT(batch.size(), 1 << 20) << "what a topic takes by default";
    sequences.push_back(header.base_sequence);
  }
  EXPECT_THAT(sequences, ElementsAre(0, 1, 2, 3, 4));
  add({}, "next");
  outputs = outputs_.take();
  EXPECT_EQ(read_batch_header(outputs.at(0).batches.at(0)).value().base_sequence, 5);
}

TEST_F(StreamOutputsTest, ARecordIsTakenBackAlsoWhereItHasFilledBatches) {
  add({}, "kept");
  outputs_.keep();
  const std::string large(300'000, 'x');
  for (int i = 0; i < 5; ++i) add({}, large);
  add({}, "elsewhere", 1);
  outputs_.undo();
  add({}, "kept too");
  outputs_.keep();
  const auto outputs = outputs_.take();
  ASSERT_EQ(outputs.size(), 1);
  ASSERT_EQ(outputs[0].batches.size(), 1);
  EXPECT_THAT(values_in(outputs[0].batches[0]), ElementsAre("kept", "kept too"));
}

TEST_F(StreamOutputsTest, MemoryIsHeldUntilItIsWritten) {
  const std::string large(300'000, 'x');
  for (int i = 0; i < 5; ++i) add({}, large);
  outputs_.keep();
  EXPECT_GT(memory_.bytes_used(), 5 * 300'000);
  const auto outputs = outputs_.take();
  EXPECT_GT(memory_.bytes_used(), 5 * 300'000);
  outputs_.written();
  EXPECT_EQ(memory_.bytes_used(), 0);
  for (int i = 0; i < 5; ++i) add({}, large);
  outputs_.undo();
  EXPECT_LT(memory_.bytes_used(), 2 * 300'000) << "one buffer may be kept for what comes";
}

TEST_F(StreamOutputsTest, ATopicThatWasMissingIsAskedForAgain) {
  EXPECT_EQ(outputs_.find("other"), nullptr);
  outputs_.set_partitions("other", 0);
  ASSERT_NE(outputs_.find("other"), nullptr);
  EXPECT_FALSE(StreamOutputs::exists(*outputs_.find("other")));
  outputs_.forget_missing();
  EXPECT_EQ(outputs_.find("other"), nullptr);
  EXPECT_NE(outputs_.find("t"), nullptr);
  EXPECT_THAT(outputs_.take(), IsEmpty());
}

}  // namespace
}  // namespace millrace::kernel
