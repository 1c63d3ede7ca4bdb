// Every reason to refuse a plugin, with a real file: which file, what was found, what was expected,
// what to do; and that nothing of it ran that must not.
#include "kernel/host/library.h"

#include <elf.h>

#include "host_fixture.h"

namespace millrace::kernel {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// The detail of the refusal; checks that no object of the plugin was made.
std::string refusal(const std::string& path, std::string_view kind = "compression") {
  const Probe probe;
  const auto library = load_plugin(path, kind);
  EXPECT_FALSE(Probe::called()) << path << ": create() was called";
  if (library) return "loaded";
  EXPECT_EQ(library.error().code, Errc::incompatible) << path;
  return library.error().detail;
}

/// As refusal(), of a file that must not even be mapped.
std::string refusal_unmapped(const std::string& path) {
  const Probe probe;
  const auto library = load_plugin(path);
  EXPECT_FALSE(Probe::loaded()) << path << ": its constructors ran";
  return library ? "loaded" : library.error().detail;
}

TEST(LibraryTest, LoadsAPluginOnce) {
  const auto first = load_plugin(good_plugin("echo"), "compression");
  ASSERT_TRUE(first) << first.error().detail;
  EXPECT_STREQ(first->descriptor->id, "org.example.compression.echo");
  EXPECT_EQ(first->path, good_plugin("echo"));
  const auto second = load_plugin(good_plugin("echo"));
  ASSERT_TRUE(second);
  EXPECT_EQ(first->descriptor, second->descriptor);
}

TEST(LibraryTest, InspectingRunsNothing) {
  const Probe probe;
  EXPECT_TRUE(inspect_plugin(bad_plugin("wrong_magic")));
  EXPECT_FALSE(Probe::loaded());
}

TEST(LibraryTest, RefusesAFileThatIsNotThere) {
  const auto library = load_plugin("/nowhere/tape.so");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, Errc::not_found);
  EXPECT_EQ(library.error().detail,
            "/nowhere/tape.so: cannot read this file: No such file or directory");
}

TEST(LibraryTest, RefusesOtherAbiMajor) {
  const auto path = bad_plugin("other_major");
  EXPECT_EQ(refusal_unmapped(path),
            path +
                ": built for plugin ABI 2, this kernel loads ABI 1; rebuild it against SDK 1.x "
                "or run a Millrace that loads ABI 2");
}

TEST(LibraryTest, RefusesAFileWithoutDescriptor) {
  const auto path = bad_plugin("no_descriptor");
  EXPECT_EQ(refusal_unmapped(path),
            path +
                ": exports no millrace_plugin_v* symbol; not a Millrace plugin (a plugin ends "
                "with MILLRACE_PLUGIN(...) and is built with millrace_add_plugin())");
}

TEST(LibraryTest, RefusesWhatIsNotElf) {
  const TemporaryFolder folder;
  const auto script = folder.write("script.so", "#!/bin/sh\necho hello\n");
  EXPECT_EQ(refusal_unmapped(script),
            script +
                ": not an ELF file; a plugin is a shared object made with "
                "millrace_add_plugin()")
      << "nothing of what is in it";
  const auto empty = folder.write("empty.so", "");
  EXPECT_EQ(refusal_unmapped(empty), empty + ": empty, not an ELF file; copy or install it again");
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LibraryTest, RefusesEveryFrontOfAPlugin) {
  const TemporaryFolder folder;
  const auto whole = bytes_of(bad_plugin("wrong_magic"));
  const auto size = whole.size();
  ASSERT_GT(size, 4096U);
  for (const auto bytes :
       {std::size_t{4}, std::size_t{63}, std::size_t{64}, std::size_t{4096}, size / 2, size - 1}) {
    const auto path = folder.write("front.so", whole.substr(0, bytes));
    EXPECT_THAT(refusal_unmapped(path), AllOf(StartsWith(path + ": truncated: "),
                                              EndsWith(", the file has " + std::to_string(bytes) +
                                                       "; copy or install it again")))
        << bytes << " of " << size << " bytes";
  }
}

template <class T>
std::string patched(std::string bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

TEST(LibraryTest, RefusesOtherMachinesAndFileTypes) {
  const TemporaryFolder folder;
  const auto whole = bytes_of(bad_plugin("wrong_magic"));
  EXPECT_THAT(
      refusal_unmapped(folder.write(
          "riscv.so", patched<std::uint16_t>(whole, offsetof(Elf64_Ehdr, e_machine), EM_RISCV))),
      HasSubstr("riscv.so: built for ELF machine 243, this is machine "));
  EXPECT_THAT(refusal_unmapped(
                  folder.write("narrow.so", patched<std::uint8_t>(whole, EI_CLASS, ELFCLASS32))),
              EndsWith("narrow.so: not a 64-bit little-endian ELF file; rebuild it for this "
                       "machine"));
  EXPECT_THAT(
      refusal_unmapped(folder.write(
          "program.so", patched<std::uint16_t>(whole, offsetof(Elf64_Ehdr, e_type), ET_EXEC))),
      EndsWith("program.so: not a shared object: ELF type 2, expected 3; link it with -shared"));
}

TEST(LibraryTest, SurvivesHeadersThatLie) {
  const TemporaryFolder folder;
  const auto whole = bytes_of(bad_plugin("wrong_magic"));
  const auto huge = ~std::uint64_t{0};
  EXPECT_THAT(refusal_unmapped(
                  folder.write("a.so", patched(whole, offsetof(Elf64_Ehdr, e_shoff), huge - 100))),
              HasSubstr("truncated: the section table"));
  EXPECT_THAT(refusal_unmapped(folder.write(
                  "b.so", patched<std::uint16_t>(whole, offsetof(Elf64_Ehdr, e_shnum), 0))),
              HasSubstr("has no section table"));
  EXPECT_THAT(refusal_unmapped(folder.write(
                  "c.so", patched<std::uint16_t>(whole, offsetof(Elf64_Ehdr, e_shstrndx), 0xfff0))),
              HasSubstr("has no section table"));
  std::uint64_t sections = 0;
  std::memcpy(&sections, whole.data() + offsetof(Elf64_Ehdr, e_shoff), sizeof sections);
  const auto second_size = sections + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
  EXPECT_THAT(refusal_unmapped(folder.write("d.so", patched(whole, second_size, huge))),
              HasSubstr("truncated: section 1 "));
}

TEST(LibraryTest, RefusesUnresolvedSymbols) {
  const auto path = bad_plugin("unresolved");
  EXPECT_THAT(refusal(path),
              AllOf(StartsWith(path + ": the system's loader refuses it: "),
                    HasSubstr("undefined symbol: millrace_test_defined_nowhere"),
                    EndsWith("; build it against this SDK and link every library it uses")));
}

TEST(LibraryTest, RefusesWrongMagic) {
  const auto path = bad_plugin("wrong_magic");
  EXPECT_EQ(refusal(path),
            path +
                ": descriptor starts with 0xdeadbeef, expected 0x4d52504c (MILLRACE_MAGIC); make "
                "it with MILLRACE_PLUGIN(...)");
}

TEST(LibraryTest, RefusesWrongSize) {
  const auto path = bad_plugin("wrong_size");
  EXPECT_EQ(refusal(path),
            path + ": descriptor is " + std::to_string(sizeof(MillraceDescriptor) - 8) +
                " bytes in the plugin, " + std::to_string(sizeof(MillraceDescriptor)) +
                " in the kernel; rebuild it against SDK 1.x");
}

TEST(LibraryTest, RefusesNewerMinor) {
  const auto path = bad_plugin("newer_minor");
  const auto kernel = std::to_string(MILLRACE_ABI_MINOR);
  EXPECT_EQ(refusal(path), path + ": built for plugin ABI 1." +
                               std::to_string(MILLRACE_ABI_MINOR + 1) +
                               ", this kernel loads 1.0 to 1." + kernel +
                               "; rebuild it against this SDK or run a newer Millrace");
}

TEST(LibraryTest, RefusesAnotherRevisionOfItsKind) {
  const auto path = bad_plugin("other_revision");
  EXPECT_EQ(refusal(path, "storage"),
            path +
                ": built for revision 1 of storage plugins, this kernel loads revision 3; "
                "rebuild it against this SDK");
}

TEST(LibraryTest, RefusesOtherToolchain) {
  const auto path = bad_plugin("other_toolchain");
  EXPECT_EQ(refusal(path), path +
                               ": toolchain differs; rebuild it with the kernel's\n"
                               "  plugin: libcxx;std=23;san=none\n"
                               "  kernel: " MILLRACE_TOOLCHAIN_PORTABLE);
}

TEST(LibraryTest, RefusesAFileOfAnotherToolchainUnmapped) {
  const auto path = bad_plugin("foreign");
  EXPECT_EQ(refusal_unmapped(path), path +
                                        ": toolchain differs; rebuild it with the kernel's\n"
                                        "  plugin: libcxx;std=23;san=none\n"
                                        "  kernel: " MILLRACE_TOOLCHAIN_PORTABLE);
}

TEST(LibraryTest, RefusesASanitizedPluginUnmapped) {
  const auto path = bad_plugin("sanitized");
  if (std::string_view(MILLRACE_TOOLCHAIN_PORTABLE).ends_with("san=none")) {
    EXPECT_THAT(refusal_unmapped(path), HasSubstr("san=address"));
  }
}

TEST(LibraryTest, SystemKindsAlsoComeFromTheSameCompiler) {
  const auto path = bad_plugin("other_system_toolchain");
  EXPECT_EQ(refusal(path, "storage"), path +
                                          ": toolchain differs; rebuild it with the kernel's\n"
                                          "  plugin: " MILLRACE_TOOLCHAIN_PORTABLE
                                          "\n"
                                          "  kernel: " MILLRACE_TOOLCHAIN_SYSTEM);
}

TEST(LibraryTest, RefusesOtherLayout) {
  const auto path = bad_plugin("other_layout");
  const auto ours = std::to_string(sizeof(Error));
  EXPECT_EQ(refusal(path), path + ": Error is " + std::to_string(sizeof(Error) + 8) +
                               " bytes aligned to 8 in the plugin, " + ours +
                               " bytes aligned to 8 in the kernel; rebuild it against this SDK");
}

TEST(LibraryTest, RefusesTypesThatTheKernelDoesNotShare) {
  const auto path = bad_plugin("unknown_type");
  EXPECT_EQ(refusal(path), path +
                               ": shares the type Teleport (16 bytes), which this kernel does "
                               "not; rebuild it against this SDK");
}

TEST(LibraryTest, RefusesMissingFields) {
  const auto path = bad_plugin("missing_field");
  EXPECT_EQ(refusal(path), path + ": descriptor has no version; make it with MILLRACE_PLUGIN(...)");
}

TEST(LibraryTest, RefusesUnknownKind) {
  const auto path = bad_plugin("unknown_kind");
  EXPECT_EQ(refusal(path), path +
                               ": of unknown kind \"compresion\"; kinds are compression, "
                               "coordination, storage, operators, transport; nearest known: "
                               "compression");
}

TEST(LibraryTest, RefusesAnotherKindThanAskedFor) {
  const auto path = good_plugin("echo");
  EXPECT_EQ(refusal(path, "storage"),
            path +
                ": a compression plugin, expected a storage plugin; name it in the table of its "
                "kind and keep it in compression/");
  EXPECT_EQ(refusal(path, "operators"),
            path +
                ": a compression plugin, expected an operators plugin; name it in the table of its "
                "kind and keep it in compression/");
}

TEST(LibraryTest, RefusesABadId) {
  const auto path = bad_plugin("bad_id");
  EXPECT_EQ(refusal(path), path +
                               ": id \"My Codec\" is not a dotted name of lower-case letters, "
                               "digits, \"_\" and \"-\", such as org.example.storage.tape");
}

}  // namespace
}  // namespace millrace::kernel
