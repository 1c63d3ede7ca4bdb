// How `consume` prints a message: a text of the user's with directives, as kcat has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/record.h>
#include <millrace/result.h>

namespace millrace::kernel::cli {

class MessageFormat {
 public:
  /// `%s` value, `%S` its bytes, `%k` key, `%K` its bytes, `%h` headers, `%t` topic, `%p`
  /// partition,
  /// `%o` offset, `%T` time in milliseconds, `%d` time as a date, `%%`; `\n`, `\t`, `\r`, `\0`,
  /// `\\`,
  /// `\xHH`. Bytes of what is null are -1, as kcat has it. The error names what is none of them.
  static Result<MessageFormat> parse(std::string_view text);
  /// What is printed without one: values alone, or behind their keys and headers, with tabs
  /// between.
  static MessageFormat lines(bool keys, bool headers);

  void append(std::string& to, std::string_view topic, std::int32_t partition,
              const RecordView& record) const;

  /// The same for a terminal: what the message holds is no command for it, and the text of the
  /// format, which its user has written, stays as it is.
  void append_printable(std::string& to, std::string_view topic, std::int32_t partition,
                        const RecordView& record) const;

  /// For --help.
  static std::string_view directives();

 private:
  struct Part {
    char directive = 0;  ///< 0: the text
    std::string text;
  };
  static void append(std::string& to, const Part& part, std::string_view topic,
                     std::int32_t partition, const RecordView& record);

  std::vector<Part> parts_;
};

/// `text` with its `\n`, `\t`, ... as the characters that they are. The error names what is none.
Result<std::string> unescaped(std::string_view text);

}  // namespace millrace::kernel::cli
