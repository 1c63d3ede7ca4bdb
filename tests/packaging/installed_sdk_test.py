#!/usr/bin/env python3
"""A plugin's author has the installed SDK and no source tree: the template and this repository's own
plugin folders build against it, by the product's compiler and by another, and the installed programs
load the results.

installed_sdk_test.py --source DIR --build DIR --compiler CXX --other-compiler CXX"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 10

EXAMPLES = ("contains", "word_count", "bank")
EXAMPLE_LINES_MAX = 60

# As somebody would who keeps plugin folders in a repository of their own.
OUTSIDE = """\
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_package(Millrace REQUIRED)
foreach(folder {folders})
  string(MAKE_C_IDENTIFIER "${{folder}}" binary_folder)
  add_subdirectory("${{folder}}" "${{binary_folder}}")
endforeach()
"""


def run(*command: str | Path, code: int = 0) -> str:
    """What it prints on both streams; fails with that when it ends with another code."""
    ended = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if ended.returncode != code:
        shown = " ".join(str(word) for word in command)
        raise AssertionError(
            f"{shown}: ended with {ended.returncode}, expected {code}\n{ended.stdout}"
        )
    return ended.stdout


class InstalledSdkTest(unittest.TestCase):
    options: argparse.Namespace

    @classmethod
    def setUpClass(cls):
        # Short, and outside of the source tree: nothing is found by its neighbourhood.
        folder = tempfile.TemporaryDirectory(prefix="millrace-sdk-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = cls.folder / "prefix"
        for component in ("sdk", "runtime"):
            run("cmake", "--install", cls.options.build, "--prefix", cls.prefix,
                "--component", component)  # fmt: skip

    def build(self, source: Path, compiler: str, *targets: str) -> Path:
        """The plugins folder of a build of `source` against the installed SDK."""
        binary = Path(tempfile.mkdtemp(dir=self.folder))
        run("cmake", "-G", "Ninja", "-S", source, "-B", binary,
            f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={self.prefix}")  # fmt: skip
        run("cmake", "--build", binary, *(word for name in targets for word in ("--target", name)))
        return binary / "plugins"

    def build_template(self, compiler: str, *targets: str) -> Path:
        """A copy of the template that was installed."""
        copy = Path(tempfile.mkdtemp(dir=self.folder)) / "deflate"
        shutil.copytree(self.prefix / "share" / "millrace" / "template" / "compression", copy)
        return self.build(copy, compiler, *targets)

    def build_examples(self, compiler: str) -> Path:
        """A copy of the examples that were installed; they pass their tests."""
        copy = Path(tempfile.mkdtemp(dir=self.folder)) / "examples"
        shutil.copytree(self.prefix / "share" / "millrace" / "examples", copy)
        plugins = self.build(copy, compiler)
        run("ctest", "--test-dir", plugins.parent, "--output-on-failure", "--no-tests=error")
        return plugins / "operators"

    def tool(self, *words: str | Path, code: int = 0) -> str:
        return run(self.prefix / "bin" / "millrace", *words, code=code)

    def check(self, plugin: Path, code: int = 0) -> str:
        return self.tool("plugin", "check", plugin, code=code)

    def assert_fits(self, plugin: Path):
        """The installed kernel would load it, and it shows nothing but its descriptor."""
        self.assertIn("fits this kernel", self.check(plugin))
        exported = run("nm", "--dynamic", "--defined-only", "--format=just-symbols", plugin)
        self.assertEqual(exported.split(), ["millrace_plugin_v1"])

    def build_outside(self, compiler: str, *targets: str) -> Path:
        """A build that has all plugin folders of this repository in it, and makes `targets`."""
        source = Path(tempfile.mkdtemp(dir=self.folder))
        plugins = self.options.source / "plugins"
        folders = sorted(file.parent for file in plugins.glob("*/*/CMakeLists.txt"))
        self.assertTrue(folders)
        (source / "CMakeLists.txt").write_text(
            OUTSIDE.format(folders=" ".join(f'"{folder}"' for folder in folders))
        )
        return self.build(source, compiler, *targets)

    def test_template_passes_its_contract_and_loads(self):
        plugins = self.build_template(self.options.compiler)
        run("ctest", "--test-dir", plugins.parent, "--output-on-failure", "--no-tests=error")
        self.assert_fits(plugins / "compression" / "deflate.so")

    def test_examples_are_short_pass_their_tests_and_fit(self):
        for compiler in (self.options.compiler, self.options.other_compiler):
            with self.subTest(compiler=compiler):
                operators = self.build_examples(compiler)
                for name in EXAMPLES:
                    self.assert_fits(operators / f"{name}.so")
        for name in EXAMPLES:
            source = self.prefix / "share" / "millrace" / "examples" / f"{name}.cc"
            self.assertLess(len(source.read_text().splitlines()), EXAMPLE_LINES_MAX, name)

    def test_plugin_new_makes_plugins_that_pass_their_contract_and_fit(self):
        for kind, name in (("operators", "page_views"), ("compression", "my_codec")):
            with self.subTest(kind=kind):
                folder = Path(tempfile.mkdtemp(dir=self.folder)) / name
                made = self.tool("plugin", "new", name, "--kind", kind, "--into", folder)
                self.assertIn(f"made {folder}", made)
                plugins = self.build(folder, self.options.compiler)
                run("ctest", "--test-dir", plugins.parent, "--output-on-failure",
                    "--no-tests=error")  # fmt: skip
                plugin = plugins / kind / f"{name}.so"
                self.assert_fits(plugin)
                self.assertIn(f"org.example.{kind}.{name}", self.tool("plugin", "show", plugin))

    def test_plugin_new_touches_nothing_that_is_there(self):
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for words, text in (
            (("here", "--kind", "operators", "--into", folder), "is there already"),
            (("Here", "--kind", "operators"), "expected a name"),
            (("here", "--kind", "operator"), "nearest known: operators"),
            (("here", "--kind", "operators", "--templates", folder), "no templates in"),
        ):
            refused = subprocess.run(
                [self.prefix / "bin" / "millrace", "plugin", "new", *words],
                cwd=folder, capture_output=True, text=True,
            )  # fmt: skip
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(text, refused.stderr)
        self.assertEqual(list(folder.iterdir()), [])

    def test_codec_of_another_compiler_runs_in_the_daemon(self):
        plugins = self.build_template(self.options.other_compiler, "plugin_compression_deflate")
        self.assert_fits(plugins / "compression" / "deflate.so")
        log = self.daemon_log(plugins)
        loaded = f"path={plugins}/compression/deflate.so"
        started = [line for line in log if "plugin started" in line and loaded in line]
        self.assertEqual(len(started), 1, "\n".join(log))

    def daemon_log(self, plugins: Path) -> list[str]:
        """The lines of an installed daemon that looks into `plugins`, until it serves; its stop is
        clean."""
        data = tempfile.mkdtemp(dir=self.folder)
        log_path = Path(data) / "millraced.log"
        with log_path.open("wb") as log:
            daemon = subprocess.Popen(
                [self.prefix / "bin" / "millraced",
                 "--set", f"broker.data={data}/data",
                 "--set", "transport.kafka.listen=127.0.0.1:0",
                 "--set", "transport.http.listen=127.0.0.1:0",
                 "--set", f'plugins.path=["{plugins}"]',
                 "--set", "compression.deflate.level=9"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            self.wait_until_it_serves(daemon, log_path)
            daemon.send_signal(signal.SIGTERM)
            self.assertEqual(daemon.wait(STOP_SECONDS_MAX), 0, log_path.read_text())
        finally:
            daemon.kill()
            daemon.wait()
        return log_path.read_text().splitlines()

    def wait_until_it_serves(self, daemon: subprocess.Popen, log_path: Path):
        deadline = time.monotonic() + START_SECONDS_MAX
        while "listening" not in log_path.read_text():
            self.assertLess(time.monotonic(), deadline, log_path.read_text())
            try:  # the pause between two looks
                code = daemon.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            self.fail(f"millraced ended with {code}:\n{log_path.read_text()}")

    def test_plugin_folders_of_this_repository_build_outside_it(self):
        plugins = self.build_outside(
            self.options.compiler,
            "plugin_compression_gzip",
            "plugin_storage_memory",
            "plugin_operators_filter",
        )
        self.assert_fits(plugins / "compression" / "gzip.so")
        self.assert_fits(plugins / "storage" / "memory.so")
        self.assert_fits(plugins / "operators" / "filter.so")

    def test_system_plugin_of_another_compiler_is_refused(self):
        plugins = self.build_outside(self.options.other_compiler, "plugin_storage_memory")
        bad_data = os.EX_DATAERR
        refusal = self.check(plugins / "storage" / "memory.so", code=bad_data)
        self.assertIn("toolchain differs; rebuild it with the kernel's", refusal)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--other-compiler", required=True)
    InstalledSdkTest.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
