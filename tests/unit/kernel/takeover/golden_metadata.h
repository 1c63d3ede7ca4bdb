// The metadata log that a Kafka 4.4 broker left, and what its own tool found in it.
#pragma once

#include <zlib.h>

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <millrace/environment.h>

namespace millrace::kernel {

inline const std::string golden_metadata_folder =
    MILLRACE_GOLDEN_DIR "/segments/kafka-4.4.0/__cluster_metadata/";

/// A file as it is, or unpacked when its name ends in .gz.
inline std::string golden_metadata_file(const std::string& name) {
  const auto path = golden_metadata_folder + name;
  auto* file = gzopen(path.c_str(), "rb");
  if (!file) throw std::runtime_error("cannot read " + path);
  std::string content;
  std::array<char, 65536> part;
  for (int read = 1; read > 0;) {
    read = gzread(file, part.data(), part.size());
    if (read > 0) content.append(part.data(), static_cast<std::size_t>(read));
  }
  gzclose(file);
  return content;
}

inline void put_file(FileSystem& files, const std::string& path, std::string_view content) {
  auto put = replace_file(files, path, as_bytes(content));
  if (!put) throw std::runtime_error(to_string(put.error()));
}

/// The folder of a Kafka broker that was stopped cleanly, as `data`.
inline void put_golden_metadata(FileSystem& files, const std::string& data) {
  const auto folder = data + "/__cluster_metadata-0";
  if (!files.make_folders(folder)) throw std::runtime_error("cannot make " + folder);
  for (const std::string name :
       {"00000000000000000000.log.gz", "00000000000000000000-0000000000.checkpoint"}) {
    const auto plain = name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
    put_file(files, folder + "/" + plain, golden_metadata_file(name));
  }
  put_file(files, data + "/meta.properties",
           "version=1\nnode.id=1\ncluster.id=golden-cluster\ndirectory.id=d\n");
}

}  // namespace millrace::kernel
