#include "plugins/operators/consumer_groups/consumer/metadata_hash.h"

#include <gtest/gtest.h>

#include <millrace/testing/aggregate_driver.h>

namespace millrace::consumer_groups {
namespace {

/// One topic, as a recorded Kafka broker had it.
class OneTopic final : public ClusterView {
 public:
  OneTopic(std::string name, std::string_view id)
      : topic_{.name = std::move(name), .id = *parse_uuid(id), .racks = {{}}} {}
  std::int64_t version() const noexcept override { return 1; }
  const ClusterTopic* find(std::string_view name) const override {
    return name == topic_.name ? &topic_ : nullptr;
  }
  const ClusterTopic* find(const Uuid& id) const override {
    return id == topic_.id ? &topic_ : nullptr;
  }
  std::vector<std::string_view> names() const override { return {topic_.name}; }

 private:
  ClusterTopic topic_;
};

// tests/golden/segments/kafka-4.4.0/__consumer_offsets, groups gnew and g-ck2.
TEST(MetadataHashTest, IsTheOneThatKafkaWrites) {
  EXPECT_EQ(metadata_hash({"s-java"}, OneTopic("s-java", "Nd_7eFQhRAGvFlJ4ma_wLg")),
            -6931004877960445839);
  EXPECT_EQ(metadata_hash({"s-kcat"}, OneTopic("s-kcat", "aawqwoRDQ8uKGxFsghgKvw")),
            -7029251141987821015);
}

TEST(MetadataHashTest, IsOfTopicsThatExist) {
  const OneTopic cluster("a", "Nd_7eFQhRAGvFlJ4ma_wLg");
  EXPECT_EQ(metadata_hash({}, cluster), 0);
  EXPECT_EQ(metadata_hash({"none"}, cluster), 0);
  EXPECT_EQ(metadata_hash({"a", "none"}, cluster), metadata_hash({"a"}, cluster));
}

TEST(MetadataHashTest, SeesPartitionsAndRacksWhateverTheirOrder) {
  ClusterTopic topic{.name = "t", .id = {}, .racks = {{"a", "b"}}};
  const auto before = topic_hash(topic);
  topic.racks = {{"b", "a"}};
  EXPECT_EQ(topic_hash(topic), before);
  topic.racks = {{"b"}};
  EXPECT_NE(topic_hash(topic), before);
  topic.racks = {{"a", "b"}, {}};
  EXPECT_NE(topic_hash(topic), before);
  topic.racks = {{"\xf0\x9f\x98\x80", "\xff"}};  // beyond UTF-16's first plane; not UTF-8 at all
  EXPECT_NE(topic_hash(topic), before);
}

}  // namespace
}  // namespace millrace::consumer_groups
