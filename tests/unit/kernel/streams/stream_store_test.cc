// Declarations of streams as coordination keeps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/streams/stream_store.h"

namespace millrace::kernel {
namespace {

TEST(StreamStoreTest, ADeclarationReadsBackAsItWas) {
  StreamSpec spec;
  spec.name = "clean";
  spec.sources = {"a", "b"};
  spec.sink = "c";
  spec.on_error = "dead-letter";
  spec.dead_letter = "d";
  spec.from = "latest";
  spec.memory_bytes = 123'456;
  spec.timeout_ms = 789;
  spec.steps.push_back({"one",
                        "filter",
                        {{"text", std::string("x \"y\"")},
                         {"number", std::int64_t{-5}},
                         {"share", 0.25},
                         {"on", true},
                         {"list", std::vector<std::string>{"p", "q"}}},
                        "/data/.operators/1.so"});
  spec.steps.push_back({"two", "map", {}, ""});
  const auto read = decode_stream("clean", encode_stream(spec)).value();
  EXPECT_EQ(read.name, "clean");
  EXPECT_EQ(read.sources, spec.sources);
  EXPECT_EQ(read.sink, "c");
  EXPECT_EQ(read.on_error, "dead-letter");
  EXPECT_EQ(read.dead_letter, "d");
  EXPECT_EQ(read.from, "latest");
  EXPECT_EQ(read.guarantee, "at-least-once");
  EXPECT_EQ(read.memory_bytes, 123'456);
  EXPECT_EQ(read.timeout_ms, 789);
  ASSERT_EQ(read.steps.size(), 2);
  EXPECT_EQ(read.steps[0].name, "one");
  EXPECT_EQ(read.steps[0].plugin, "filter");
  EXPECT_EQ(read.steps[0].options, spec.steps[0].options);
  EXPECT_EQ(read.steps[0].file, "/data/.operators/1.so");
  EXPECT_EQ(read.steps[1].file, "");
}

TEST(StreamStoreTest, WhatIsMalformedNamesItsKey) {
  for (const auto* text :
       {"", "{", "[]", "{}", R"({"spec":1})", R"({"spec":{"sources":[]}})",
        R"({"spec":{"sources":[1],"steps":[]}})", R"({"spec":{"sources":["a"],"steps":[1]}})",
        R"({"spec":{"sources":["a"],"steps":[{"options":{"x":null}}]}})",
        R"({"spec":{"sources":["a"],"steps":[],"timeout_ms":"1"}})"}) {
    const auto read = decode_stream("x", text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Errc::corrupt);
    EXPECT_THAT(read.error().detail, testing::HasSubstr("/millrace/streams/x"));
  }
}

TEST(StreamStoreTest, ADeclarationOfALaterVersionIsRefused) {
  const auto read = decode_stream("x", R"({"version":2,"spec":{"sources":["a"],"steps":[]}})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::incompatible);
  EXPECT_EQ(read.error().detail,
            "/millrace/streams/x is of format version 2, and this broker knows up to 1; start the "
            "version of Millrace that has written it");
}

}  // namespace
}  // namespace millrace::kernel
