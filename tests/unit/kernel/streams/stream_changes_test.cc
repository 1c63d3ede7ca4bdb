#include "kernel/streams/stream_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const MillraceDescriptor one{};
const MillraceDescriptor two{};

PlannedStream stream(const std::string& name, const std::vector<const MillraceDescriptor*>& files) {
  PlannedStream planned;
  planned.spec.name = name;
  planned.spec.sources = {"in"};
  for (const auto* file : files) {
    const auto step = "s" + std::to_string(planned.steps.size());
    planned.spec.steps.push_back({step, "pass", {}, {}});
    planned.steps.push_back({{"/p/pass.so", file}, {}});
  }
  return planned;
}

std::vector<std::string> told(const std::vector<PlannedStream>& running,
                              const std::vector<PlannedStream>& wanted) {
  std::vector<std::string> lines;
  for (const auto& change : changes_between(running, wanted)) {
    lines.push_back(to_string(change, wanted));
  }
  return lines;
}

TEST(StreamChangesTest, WhatIsDeclaredAsItWasIsLeftAlone) {
  auto placed = stream("a", {&one});
  placed.spec.steps[0].file = "/data/.operators/x.so";  // by an operator's hand
  EXPECT_THAT(told({placed}, {stream("a", {&one})}), IsEmpty());
}

TEST(StreamChangesTest, NewOnesStartAndThoseThatAreGoneEnd) {
  EXPECT_THAT(told({stream("old", {&one}), stream("same", {&one})},
                   {stream("new", {&one}), stream("same", {&one})}),
              ElementsAre("stream new: started", "stream old: ended, its changelog stays"));
}

TEST(StreamChangesTest, AnotherDeclarationIsAnotherStream) {
  auto wanted = stream("a", {&two});
  wanted.spec.steps[0].options["ms"] = std::int64_t{5};
  EXPECT_THAT(told({stream("a", {&one})}, {wanted}),
              ElementsAre("stream a: goes on as it is declared now"));
}

TEST(StreamChangesTest, OfOtherFilesTheStepsAreNamed) {
  EXPECT_THAT(told({stream("a", {&one, &one, &one})}, {stream("a", {&one, &two, &one})}),
              ElementsAre("stream a: operator s1 replaced"));
  EXPECT_THAT(told({stream("a", {&one, &one, &one})}, {stream("a", {&two, &one, &two})}),
              ElementsAre("stream a: operators s0, s2 replaced"));
}

}  // namespace
}  // namespace millrace::kernel
