"""What the packages are, before anybody installs them."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import TREE

NAMES = {
    "millrace",
    "millrace-dbgsym",
    "millrace-plugin-zookeeper",
    "millrace-plugin-zookeeper-dbgsym",
    "millrace-sdk",
}


def run(*command: str | Path, **options) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def field(package: Path, name: str) -> str:
    return run("dpkg-deb", "--field", package, name).strip()


def package(packages: Path, name: str) -> Path:
    (path,) = packages.glob(f"{name}_*.deb")
    return path


def files_of(package: Path) -> dict[str, str]:
    """Path → mode and owner."""
    listed = run("dpkg-deb", "--contents", package).splitlines()
    words = (line.split(maxsplit=5) for line in listed)
    return {path.removeprefix("."): f"{mode} {owner}" for mode, owner, _, _, _, path in words}


def unpacked(package: Path, into: Path) -> Path:
    run("dpkg-deb", "--extract", package, into)
    return into


def test_all_have_the_version_of_the_project(packages):
    version = re.search(r"project\(Millrace VERSION (\S+)", (TREE / "CMakeLists.txt").read_text())[1]
    found = {field(path, "Package"): field(path, "Version") for path in packages.glob("*.deb")}
    assert found == dict.fromkeys(NAMES, version)
    assert {path.name.split("_")[1] for path in packages.glob("*.deb")} == {version}
    assert all(f"-{version}-1." in path.name for path in packages.glob("*.rpm"))


def test_files_are_where_the_contract_has_them(packages):
    files = files_of(package(packages, "millrace"))
    for path in (
        "/usr/bin/millrace",
        "/usr/bin/millraced",
        "/usr/lib/millrace/plugins/transport/kafka.so",
        "/usr/lib/millrace/plugins/coordination/standalone.so",
        "/etc/millrace/millrace.toml",
        "/etc/millrace/conf.d/",
        "/usr/lib/systemd/system/millrace.service",
        "/usr/lib/systemd/system/millrace@.service",
        "/usr/lib/sysusers.d/millrace.conf",
        "/usr/lib/tmpfiles.d/millrace.conf",
        "/usr/share/bash-completion/completions/millrace",
        "/usr/share/zsh/vendor-completions/_millrace",
        "/usr/share/fish/vendor_completions.d/millrace.fish",
        "/usr/share/man/man1/millrace-topic.1.gz",
        "/usr/share/man/man5/millrace.toml.5.gz",
        "/usr/share/man/man8/millraced.8.gz",
        "/usr/share/doc/millrace/html/millrace.toml.html",
    ):
        assert path in files
    assert all(about.endswith("root/root") for about in files.values())
    assert all(about[1:10] in ("rwxr-xr-x", "rw-r--r--") for about in files.values())
    plugin = "/usr/lib/millrace/plugins/coordination/zookeeper.so"
    assert plugin not in files
    assert plugin in files_of(package(packages, "millrace-plugin-zookeeper"))
    sdk = files_of(package(packages, "millrace-sdk"))
    for path in (
        "/usr/include/millrace/plugin.h",
        "/usr/include/millrace/testing/codec_contract.h",
        "/usr/lib/libmillrace_sdk.a",
        "/usr/lib/cmake/Millrace/MillraceConfig.cmake",
        "/usr/share/millrace/template/operators/CMakeLists.txt",
    ):
        assert path in sdk


def test_the_configuration_is_the_one_that_says_every_option(packages, tmp_path):
    installed = unpacked(package(packages, "millrace"), tmp_path) / "etc/millrace/millrace.toml"
    assert installed.read_bytes() == (TREE / "configs" / "millrace.toml").read_bytes()
    assert run("dpkg-deb", "--info", package(packages, "millrace"), "conffiles").split() == [
        "/etc/millrace/millrace.toml"
    ]


NEEDED_BESIDE_LIBRARIES = {
    "millrace": {"systemd"},
    "millrace-plugin-zookeeper": {"millrace"},
    "millrace-sdk": set(),
}


def libraries_needed(folder: Path) -> set[str]:
    """What the loader looks for, for all programs and libraries below, and does not find there."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    loaded = [path for path in files if path.open("rb").read(4) == b"\x7fELF"]
    wanted = {name for path in loaded for name in re.findall(r"\(NEEDED\).*\[(\S+)\]", run("readelf", "-d", path))}
    return wanted - {path.name for path in loaded}


def owner_of(library: str) -> str:
    """The Debian package that the library is of."""
    found = run("dpkg-query", "--search", f"*/{library}").splitlines()
    places = re.compile(rf": (/usr)?/lib/[^/]+-linux-gnu/{re.escape(library)}$")  # where the loader looks
    (owner,) = {line.split(":")[0] for line in found if places.search(line)}
    return owner


@pytest.mark.parametrize("name", NEEDED_BESIDE_LIBRARIES)
def test_they_depend_on_what_their_files_need_and_on_nothing_else(packages, tmp_path, name):
    path = package(packages, name)
    needed = {owner_of(library) for library in libraries_needed(unpacked(path, tmp_path))}
    depends = field(path, "Depends")
    assert {part.split()[0] for part in depends.split(", ") if part} == needed | NEEDED_BESIDE_LIBRARIES[name]
    version = field(package(packages, "millrace"), "Version")
    if name == "millrace":
        assert "libzstd1 (>= " in depends
    if name == "millrace-plugin-zookeeper":
        assert f"millrace (= {version})" in depends and "libzookeeper-mt2" in needed


def test_symbols_name_lines_of_the_sources(packages, tmp_path):
    symbols = unpacked(package(packages, "millrace-dbgsym"), tmp_path / "symbols")
    program = unpacked(package(packages, "millrace"), tmp_path / "program") / "usr/bin/millraced"
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "--notes", program))[1]
    file = symbols / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    main = re.search(r"^(\w+) [Tt] main$", run("nm", file), re.MULTILINE)[1]
    assert re.search(r"\./kernel/daemon/main\.cc:\d+", run("addr2line", "--exe", file, main))


def test_nothing_in_them_says_where_they_were_built(packages, tmp_path):
    for path in packages.glob("*.deb"):
        folder = unpacked(path, tmp_path / path.stem)
        found = subprocess.run(
            ["grep", "-rl", "--fixed-strings", TREE, folder], capture_output=True, text=True, check=False
        )
        assert found.stdout == "", path.name


@pytest.mark.parametrize("name", sorted(NAMES))
def test_lintian_finds_no_error(packages, name):
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on=error", package(packages, name)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "no-manual-page" not in done.stdout
