#include <millrace/testing/kept_log.h>

#include <algorithm>

namespace millrace::testing {

void KeptLog::write(LogLevel level, std::string_view subsystem, std::string_view message,
                    std::initializer_list<LogField> fields) noexcept {
  auto line = std::string(name_of(level)) + " " + std::string(subsystem) + ": ";
  line += message;
  for (const auto& field : fields) {
    line += " ";
    line += field.name;
    line += "=" + field.value;
  }
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
}

std::vector<std::string> KeptLog::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

bool KeptLog::contains(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(lines_, [text](const auto& line) { return line.contains(text); });
}

}  // namespace millrace::testing
