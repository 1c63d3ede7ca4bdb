// What every codec must do, as gtest cases. Include it in one source file of a test program and
// name the codec, which may come straight from a shared object:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, CodecContract, ::testing::Values(CodecCase{
//       "mine", CompressionId::zstd, [] { return load_codec("mine.so"); }}));
//
// A format need not detect that its input was cut where a part of it ended (snappy's blocks); so
// only small inputs, which have one part, are cut everywhere.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/codec.h>
#include <millrace/testing/loaded_codec.h>

namespace millrace::testing {

struct CodecCase {
  std::string name;
  CompressionId id;
  std::function<std::shared_ptr<const Codec>()> make;
};
inline void PrintTo(const CodecCase& one, std::ostream* out) { *out << one.name; }

/// Bytes that no codec makes smaller.
inline std::string random_content(std::size_t bytes, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::string content(bytes, '\0');
  for (auto& c : content) c = static_cast<char>(random());
  return content;
}

/// Bytes like those of records: words that repeat, figures that do not.
inline std::string record_content(std::size_t bytes, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::string content;
  while (content.size() < bytes) {
    content += R"({"customer":)" + std::to_string(random() % 100'000) + R"(,"state":"shipped"})";
  }
  content.resize(bytes);
  return content;
}

class CodecContract : public ::testing::TestWithParam<CodecCase> {
 protected:
  static constexpr std::size_t plenty = 1 << 30;

  CodecContract() : codec_(GetParam().make()) {}
  void SetUp() override { ASSERT_NE(codec_, nullptr); }

  Buffer compressed(std::string_view content) const {
    auto output = codec_->compress(as_bytes(content));
    EXPECT_TRUE(output) << output.error().detail;
    return output ? *std::move(output) : Buffer();
  }
  Errc refusal(Bytes input, std::size_t output_bytes_max = plenty) const {
    const auto output = codec_->decompress(input, output_bytes_max);
    if (output) return Errc::ok;
    EXPECT_FALSE(output.error().detail.empty());
    return output.error().code;
  }

  std::shared_ptr<const Codec> codec_;
};

TEST_P(CodecContract, TellsItsId) { EXPECT_EQ(codec_->id(), GetParam().id); }

TEST_P(CodecContract, GivesBackWhatItGot) {
  const std::vector<std::string> contents{
      "",
      "x",
      record_content(300),
      random_content(300),
      record_content(100'000),
      random_content(1 << 20),
      record_content(5 << 20),
      std::string(3 << 20, '\0'),
  };
  for (const auto& content : contents) {
    const auto block = compressed(content);
    // The bound may be met exactly.
    const auto opened = codec_->decompress(block, content.size());
    ASSERT_TRUE(opened) << content.size() << " bytes: " << opened.error().detail;
    EXPECT_TRUE(opened->text() == content) << content.size() << " bytes";
  }
}

TEST_P(CodecContract, MakesRecordsSmaller) {
  const auto content = record_content(1 << 20);
  EXPECT_LT(compressed(content).size(), content.size() / 2);
}

TEST_P(CodecContract, RefusesOneByteMoreThanTheBound) {
  for (const std::size_t bytes : {1UZ, 300UZ, 1UZ << 20}) {
    for (const auto& content : {record_content(bytes), random_content(bytes)}) {
      EXPECT_EQ(refusal(compressed(content), bytes - 1), Errc::too_large) << bytes;
    }
  }
}

TEST_P(CodecContract, RefusesABomb) {
  const std::string zeros(64 << 20, '\0');
  const auto bomb = compressed(zeros);
  EXPECT_LT(bomb.size(), zeros.size() / 15);
  EXPECT_EQ(refusal(bomb, 1 << 20), Errc::too_large);
  EXPECT_EQ(refusal(bomb, 0), Errc::too_large);
}

TEST_P(CodecContract, RefusesEveryPrefixOfASmallBlock) {
  for (const auto& content : {std::string(), record_content(700), random_content(700)}) {
    const auto block = compressed(content);
    for (std::size_t bytes = 0; bytes < block.size(); ++bytes) {
      // A copy of its own, so that a sanitizer sees a read behind the end.
      const auto prefix = block.slice(0, bytes).detach();
      EXPECT_EQ(refusal(prefix), Errc::corrupt) << bytes << " of " << block.size() << " bytes";
    }
  }
}

TEST_P(CodecContract, ACutBlockNeverYieldsAnythingButABeginning) {
  const auto content = record_content(200'000);
  const auto block = compressed(content);
  for (std::size_t bytes = 0; bytes < block.size(); bytes += 97) {
    const auto opened = codec_->decompress(block.slice(0, bytes), plenty);
    if (opened) {
      EXPECT_LT(opened->size(), content.size());
      EXPECT_TRUE(content.starts_with(opened->text()));
    }
  }
}

TEST_P(CodecContract, RefusesGarbage) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    const auto garbage = random_content(32 + seed, seed);
    EXPECT_NE(refusal(as_bytes(garbage), 1 << 20), Errc::ok) << "seed " << seed;
  }
}

TEST_P(CodecContract, RefusesWhatStandsBehindABlock) {
  const auto block = compressed(record_content(700));
  const auto followed = std::string(block.text()) + random_content(40);
  EXPECT_EQ(refusal(as_bytes(followed)), Errc::corrupt);
}

// Not every change can be noticed, but none may do harm.
TEST_P(CodecContract, SurvivesEveryChangeOfOneByte) {
  const auto block = compressed(record_content(700));
  for (std::size_t at = 0; at < block.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed(block.text());
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto opened = codec_->decompress(Buffer::copy_of(changed), 10'000);
      if (opened) {
        EXPECT_LE(opened->size(), 10'000);
      }
    }
  }
}

TEST_P(CodecContract, ServesSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] {
      for (int round = 0; round < 20; ++round) {
        const auto content = record_content(50'000, seed);
        const auto opened = codec_->decompress(compressed(content), content.size());
        EXPECT_TRUE(opened && opened->text() == content);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace millrace::testing
