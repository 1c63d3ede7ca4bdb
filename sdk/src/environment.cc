#include <millrace/environment.h>

#include <charconv>

namespace millrace {

Uuid Random::uuid() {
  Uuid id;
  fill(std::as_writable_bytes(std::span(id.bytes)));
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x40);
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
  return id;
}

Result<Address> parse_address(std::string_view text) {
  const auto malformed = [&] {
    return Error{Errc::invalid_argument, "'" + std::string(text) +
                                             "' is not an address; expected HOST:PORT, for example "
                                             "127.0.0.1:9092 or [::1]:9092"};
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return malformed();
  auto host = text.substr(0, colon);
  const auto port_text = text.substr(colon + 1);
  if (host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') return malformed();
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return malformed();
  }
  Address address{std::string(host), 0};
  const auto [at, error] = std::from_chars(port_text.begin(), port_text.end(), address.port);
  if (error != std::errc{} || at != port_text.end()) return malformed();
  return address;
}

std::string to_string(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  const auto host = brackets ? "[" + address.host + "]" : address.host;
  return host + ":" + std::to_string(address.port);
}

Result<Buffer> read_file(FileSystem& files, const std::string& path) {
  MR_TRY(auto file, files.open(path, OpenMode::read));
  MR_TRY(const auto size, file->size());
  MutableBuffer content(size);
  MR_TRY(const auto bytes_read, file->read_at(0, content.space()));
  content.filled(bytes_read);
  return std::move(content).freeze();
}

Result<> replace_file(FileSystem& files, const std::string& path, Bytes content) {
  const auto temporary = path + ".tmp";
  {
    MR_TRY(auto file, files.open(temporary, OpenMode::create));
    MR_CHECK(file->truncate(0));
    MR_CHECK(file->write_at(0, std::span(&content, 1)));
    MR_CHECK(file->sync());
  }
  MR_CHECK(files.rename(temporary, path));
  const auto slash = path.rfind('/');
  return files.sync_folder(slash == std::string::npos ? "." : path.substr(0, slash));
}

}  // namespace millrace
