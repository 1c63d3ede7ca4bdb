// What the test of imported symbols has to find: a library that goes around the environment.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

extern "C" __attribute__((visibility("default"))) long reach_outside() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int file = ::open("/dev/null", O_RDONLY);
  std::thread([] {}).join();
  std::ifstream stream("/dev/null");
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return now + ::close(listener) + ::close(file);
}
