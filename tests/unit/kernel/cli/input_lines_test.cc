#include "kernel/cli/input_lines.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class InputLinesTest : public testing::Test {
 protected:
  std::vector<std::string> lines_of(std::string_view content, const std::string& separator) {
    const auto file = testing::TempDir() + "input_lines";
    std::ofstream(file, std::ios::binary) << content;
    auto input = InputLines::open(file, separator);
    EXPECT_TRUE(input);
    std::vector<std::string> lines;
    while (true) {
      EXPECT_TRUE(input->is_ready(std::chrono::milliseconds(0)));
      auto line = input->next();
      if (!line || !*line) break;
      lines.push_back(**line);
    }
    EXPECT_EQ(input->bytes_read(), content.size());
    EXPECT_EQ(input->bytes_total(), content.size());
    return lines;
  }
};

TEST_F(InputLinesTest, LinesEndAtTheirSeparatorAndTheLastAtTheEnd) {
  EXPECT_THAT(lines_of("a\n\nb", "\n"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of("a\nb\n", "\n"), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("a--b-c--", "--"), ElementsAre("a", "b-c"));
  EXPECT_THAT(lines_of("", "\n"), IsEmpty());
}

TEST_F(InputLinesTest, WithoutASeparatorTheWholeIsOne) {
  EXPECT_THAT(lines_of("a\nb\n", ""), ElementsAre("a\nb\n"));
  EXPECT_THAT(lines_of("", ""), IsEmpty());
}

TEST_F(InputLinesTest, LinesAreLongerThanWhatIsReadAtOnce) {
  const std::string longest(1'000'000, 'x');
  std::string content = longest + "--" + longest + "-";
  EXPECT_THAT(lines_of(content, "--"), ElementsAre(longest, longest + "-"));
}

TEST_F(InputLinesTest, AFileThatIsNotThereIsNamed) {
  const auto missing = InputLines::open("/no/such/file", "\n");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().detail, HasSubstr("/no/such/file: No such file"));
}

}  // namespace
}  // namespace millrace::kernel::cli
