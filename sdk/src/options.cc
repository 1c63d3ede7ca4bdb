#include <millrace/options.h>

#include <millrace/observe.h>
#include <millrace/result.h>

namespace millrace {

namespace {
template <class T>
const T& value_of(const std::map<std::string, OptionValue, std::less<>>& values,
                  std::string_view name) {
  const auto found = values.find(name);
  MR_ASSERT(found != values.end());
  const auto* value = std::get_if<T>(&found->second);
  MR_ASSERT(value != nullptr);
  return *value;
}
}  // namespace

const std::string& Options::text(std::string_view name) const {
  return value_of<std::string>(values_, name);
}
std::int64_t Options::integer(std::string_view name) const {
  return value_of<std::int64_t>(values_, name);
}
bool Options::boolean(std::string_view name) const { return value_of<bool>(values_, name); }
double Options::number(std::string_view name) const { return value_of<double>(values_, name); }
const std::vector<std::string>& Options::texts(std::string_view name) const {
  return value_of<std::vector<std::string>>(values_, name);
}

std::string_view name_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace: return "trace";
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: break;
  }
  return "error";
}

}  // namespace millrace
