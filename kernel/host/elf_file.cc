#include "kernel/host/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string_view>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/library_info.hpp>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

#if defined(__x86_64__)
constexpr std::uint16_t this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t this_machine = EM_AARCH64;
#else
#error "name this machine's ELF number"
#endif

/// No name of a section and no text in one that we look for is longer.
constexpr std::uint64_t text_bytes_max = 1024;

Error refused(std::string reason) { return {Errc::incompatible, std::move(reason)}; }

template <class T>
bool read_at(std::ifstream& file, std::uint64_t position, T& value) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(position));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&value), sizeof value));
}

Error truncated(std::string_view what, std::uint64_t end, std::uint64_t size) {
  return refused(concat("truncated: ", what, " ends at byte ", end, ", the file has ", size,
                        "; copy or install it again"));
}

// `position + bytes`, where both come from the file.
bool fits(std::uint64_t position, std::uint64_t bytes, std::uint64_t size) {
  return position <= size && bytes <= size - position;
}

Result<> check_header(const Elf64_Ehdr& header) {
  const auto* ident = header.e_ident;
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB) {
    return refused("not a 64-bit little-endian ELF file; rebuild it for this machine");
  }
  if (header.e_machine != this_machine) {
    return refused(concat("built for ELF machine ", header.e_machine, ", this is machine ",
                          this_machine, "; rebuild it for this machine"));
  }
  if (header.e_type != ET_DYN) {
    return refused(concat("not a shared object: ELF type ", header.e_type, ", expected ", ET_DYN,
                          "; link it with -shared"));
  }
  return {};
}

/// Everything that the headers point to lies within the file, so that reading on is safe.
Result<> check_whole(std::ifstream& file, const Elf64_Ehdr& header, std::uint64_t size) {
  const std::uint64_t table_bytes = std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shstrndx >= header.e_shnum) {
    return refused("has no section table; link it without removing section headers");
  }
  if (!fits(header.e_shoff, table_bytes, size)) {
    return truncated("the section table", header.e_shoff + table_bytes, size);
  }
  for (unsigned at = 0; at < header.e_shnum; ++at) {
    Elf64_Shdr section;
    if (!read_at(file, header.e_shoff + at * sizeof section, section)) {
      return truncated("the section table", header.e_shoff + table_bytes, size);
    }
    if (section.sh_type != SHT_NOBITS && !fits(section.sh_offset, section.sh_size, size)) {
      return truncated(concat("section ", at), section.sh_offset + section.sh_size, size);
    }
  }
  return {};
}

/// The header of a file that is whole.
Result<Elf64_Ehdr> check_file(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  if (failed) {
    const auto code = failed == std::errc::no_such_file_or_directory ? Errc::not_found : Errc::io;
    return Error{code, "cannot read this file: " + failed.message()};
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error{Errc::io, concat("cannot read this file: ", std::strerror(errno))};
  }
  char start[SELFMAG] = {};
  file.read(start, sizeof start);
  const std::string_view found(start, static_cast<std::size_t>(file.gcount()));
  if (found != std::string_view(ELFMAG, SELFMAG)) {
    return refused(found.empty() ? "empty, not an ELF file; copy or install it again"
                                 : "not an ELF file; a plugin is a shared object made with "
                                   "millrace_add_plugin()");
  }
  Elf64_Ehdr header;
  if (!read_at(file, 0, header)) return truncated("the ELF header", sizeof header, size);
  MR_CHECK(check_header(header));
  MR_CHECK(check_whole(file, header, size));
  return header;
}

std::string read_text(std::ifstream& file, std::uint64_t position, std::uint64_t bytes_max) {
  std::string text(std::min(bytes_max, text_bytes_max), '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(position));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text.substr(0, text.find('\0'));
}

}  // namespace

Result<std::vector<std::string>> exported_symbols(const std::string& path) {
  if (const auto header = check_file(path); !header) return header.error();
  try {
    return boost::dll::library_info(path).symbols();
  } catch (const std::exception& failed) {
    return refused(concat("its symbols cannot be read: ", failed.what(), "; rebuild it"));
  }
}

Result<std::string> text_of_section(const std::string& path, std::string_view name) {
  MR_TRY(const auto header, check_file(path));
  std::ifstream file(path, std::ios::binary);
  const auto section_at = [&file, &header](unsigned at) {
    Elf64_Shdr section{};
    read_at(file, header.e_shoff + at * sizeof section, section);
    return section;
  };
  const auto names = section_at(header.e_shstrndx);
  for (unsigned at = 0; at < header.e_shnum; ++at) {
    const auto section = section_at(at);
    if (section.sh_type == SHT_NOBITS || section.sh_name >= names.sh_size) continue;
    const auto name_at = names.sh_offset + section.sh_name;
    if (read_text(file, name_at, names.sh_size - section.sh_name) != name) continue;
    return read_text(file, section.sh_offset, section.sh_size);
  }
  return std::string();
}

}  // namespace millrace::kernel
