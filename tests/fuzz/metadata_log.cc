// Kafka's metadata log, as a directory that is taken over may hold it.
#include <millrace/testing/sim_environment.h>

#include "fuzz.h"
#include "kernel/takeover/metadata_log.h"

using namespace millrace;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  millrace::testing::SimWorld world(1);
  auto& files = world.add_node("b1").files();
  fuzz::need(files.make_folders("/data/m"), "a folder");
  fuzz::need(
      replace_file(files, "/data/m/00000000000000000000.log", fuzz::Input(data, size).rest()),
      "a file");
  static_cast<void>(kernel::read_metadata_log(files, "/data/m"));
  return 0;
}
