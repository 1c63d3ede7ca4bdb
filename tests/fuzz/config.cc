// A configuration file, checked against what the kernel itself declares.
#include "fuzz.h"
#include "kernel/config/document.h"

using namespace millrace;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto read = kernel::read_toml(input.text(), "fuzz.toml");
  if (!read) {
    fuzz::require(!read.error().message.empty(), "an error says what is wrong");
    fuzz::require(read.error().place.line > 0, "and where");
  }
  static_cast<void>(kernel::read_set(std::string(input.text())));
  return 0;
}
