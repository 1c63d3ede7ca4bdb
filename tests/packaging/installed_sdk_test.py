#!/usr/bin/env python3
"""A plugin's author has the installed SDK and no source tree: the template and this repository's own
plugin folders build against it, by the product's compiler and by another, and the installed programs
load the results.

installed_sdk_test.py --source DIR --build DIR --compiler CXX --other-compiler CXX"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 10
README_SECONDS_MAX = 300
SERVICE_UNAVAILABLE = 503

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


# contains, then word_count, between two topics; accounts beside them.
EXAMPLE_BROKER = """\
[broker]
data = "{data}/data"

[plugins]
path = ["{plugins}"]

[operators]
plugins = ["bank"]

[transport.kafka]
listen = "127.0.0.1:0"

[transport.http]
listen = "127.0.0.1:0"

[stream.words]
sources = ["lines"]
sink = "counts"

[[stream.words.steps]]
operator = "contains"
text = "be"

[[stream.words.steps]]
operator = "word_count"
"""


# What stands in for the tool in the README's commands: theirs is the broker on the usual ports.
README_SHELL = """set -eEuo pipefail -m
trap 'cat try.log >&2; kill %1' ERR
millrace() {{
  case $1 in
    stream) command millrace stream --admin {http} "${{@:2}}" ;;
    *) command millrace -b {kafka} "$@" ;;
  esac
}}
"""
README_SECTIONS = ("## 2. Begin, build, test", "## 3. Run it")


def shell_of(readme: str, headings: tuple[str, ...]) -> str:
    """The commands of these sections, in their order."""
    parts = re.split(r"^(?=## )", readme, flags=re.MULTILINE)
    chosen = [part for heading in headings for part in parts if part.startswith(heading)]
    assert len(chosen) == len(headings), headings
    return "".join(re.findall(r"^```sh\n(.*?)^```$", "".join(chosen), re.MULTILINE | re.DOTALL))


def free_addresses(count: int) -> list[str]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{probe.getsockname()[1]}" for probe in probes]
    for probe in probes:
        probe.close()
    return addresses


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


class Daemon:
    """An installed daemon, from when it serves until its clean stop."""

    def __init__(self, case: "InstalledSdkTest", folder: Path, *arguments: str | Path):
        self.case = case
        self.log_path = folder / "millraced.log"
        self.command = [case.prefix / "bin" / "millraced", *arguments]

    def __enter__(self) -> "Daemon":
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            self.until(lambda: "broker: ready" in self.log(), "it serves")
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, failed, *_):
        try:
            self.process.send_signal(signal.SIGTERM)
            code = self.process.wait(STOP_SECONDS_MAX)
            if not failed:
                self.case.assertEqual(code, 0, self.log())
        finally:
            self.end()

    def end(self):
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        return self.log_path.read_text()

    def until(self, there: Callable[[], bool], what: str):
        deadline = time.monotonic() + START_SECONDS_MAX
        while not there():
            self.case.assertLess(time.monotonic(), deadline, f"not within time: {what}\n{self.log()}")
            try:  # the pause between two looks
                code = self.process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            self.case.fail(f"millraced ended with {code}:\n{self.log()}")

    def address(self, transport: str) -> str:
        return re.search(rf"listening transport={transport} address=(\S+)", self.log())[1]

    def tool(self, *words: str | Path, stdin: str = "") -> str:
        done = subprocess.run(
            [self.case.prefix / "bin" / "millrace", "--bootstrap", self.address("kafka"), *words],
            input=stdin, capture_output=True, text=True,
        )  # fmt: skip
        self.case.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done.stdout

    def stream(self, verb: str, *words: str | Path) -> str:
        return self.tool("stream", "--admin", self.address("http"), verb, *words)

    def send(self, lines: str):
        self.tool("produce", "lines", stdin=lines)

    def counts(self, records: int) -> list[tuple[str, int]]:
        """What the stream has written, once it is so much."""
        found: list[str] = []

        def there() -> bool:
            if "counts " not in self.tool("topic", "list"):
                return False
            found[:] = self.tool("consume", "counts", "--keys").splitlines()
            return len(found) >= records

        self.until(there, f"{records} records")
        return [(word, int(count)) for word, count in (line.split("\t") for line in found)]

    def account(self, name: str, command: str, version: int | None = None) -> tuple[str, str]:
        """(answer, version), or (error, message)."""
        headers = {} if version is None else {"millrace-expected-version": version}
        request = urllib.request.Request(
            f"http://{self.address('http')}/admin/aggregates/accounts/{name}",
            json.dumps({"command": command, "headers": headers}).encode(),
            {"Content-Type": "application/json"},
        )
        answers: list[dict] = []

        def there() -> bool:
            try:
                with urllib.request.urlopen(request, timeout=START_SECONDS_MAX) as response:
                    answers.append(json.load(response))
            except urllib.error.HTTPError as error:
                if error.code == SERVICE_UNAVAILABLE:  # it is being loaded
                    return False
                answers.append(json.load(error))
            return True

        self.until(there, command)
        answer = answers[0]
        if "error" in answer:
            return answer["error"], answer["message"]
        return answer["answer"], answer["headers"]["millrace-version"]


class InstalledSdkTest(unittest.TestCase):
    options: argparse.Namespace
    examples: ClassVar[dict[str, Path]] = {}  # by compiler

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
        """The plugins folder of a build of `source` against the installed SDK, optimized as whoever
        ships it does."""
        binary = Path(tempfile.mkdtemp(dir=self.folder))
        run("cmake", "-G", "Ninja", "-S", source, "-B", binary, "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={self.prefix}")  # fmt: skip
        run("cmake", "--build", binary, *(word for name in targets for word in ("--target", name)))
        return binary / "plugins"

    def build_template(self, compiler: str, *targets: str) -> Path:
        """A copy of the template that was installed."""
        copy = Path(tempfile.mkdtemp(dir=self.folder)) / "deflate"
        shutil.copytree(self.prefix / "share" / "millrace" / "template" / "compression", copy)
        return self.build(copy, compiler, *targets)

    def build_examples(self, compiler: str) -> Path:
        """A copy of the examples that were installed; they pass their tests. Built once for all
        who load them."""
        if compiler not in self.examples:
            copy = Path(tempfile.mkdtemp(dir=self.folder)) / "examples"
            shutil.copytree(self.prefix / "share" / "millrace" / "examples", copy)
            plugins = self.build(copy, compiler)
            run("ctest", "--test-dir", plugins.parent, "--output-on-failure", "--no-tests=error")
            self.examples[compiler] = plugins / "operators"
        return self.examples[compiler]

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

    def assert_packages_itself(self, build: Path, kind: str, name: str):
        """As a .deb for whoever has a Millrace of this ABI."""
        architecture = run("dpkg", "--print-architecture").strip()
        package = "millrace-plugin-" + name.replace("_", "-")
        deb = build / f"{package}_0.1.0_{architecture}.deb"
        files = {
            words[-1]: words[0]
            for words in map(str.split, run("dpkg-deb", "--contents", deb).splitlines())
            if not words[-1].endswith("/")
        }
        self.assertEqual(files, {
            f"./usr/lib/millrace/plugins/{kind}/{name}.so": "-rw-r--r--",
            f"./usr/share/doc/{package}/examples/{name}.toml": "-rw-r--r--",
        })  # fmt: skip
        fields = dict(
            line.split(": ", 1)
            for line in run("dpkg-deb", "--field", deb, "Package", "Version", "Depends",
                            "Architecture", "Maintainer").splitlines()
        )  # fmt: skip
        self.assertEqual(fields["Package"], package)
        self.assertEqual(fields["Version"], "0.1.0")
        self.assertEqual(fields["Architecture"], architecture)
        major, minor = self.abi()
        self.assertIn(f"millrace-plugin-abi-{major} (>= {major}.{minor})", fields["Depends"])
        self.assertIn("libstdc++6", fields["Depends"])
        root = build / "root"
        run("dpkg-deb", "--extract", deb, root)
        self.assert_fits(root / "usr" / "lib" / "millrace" / "plugins" / kind / f"{name}.so")
        example = root / "usr" / "share" / "doc" / package / "examples" / f"{name}.toml"
        checked = run(
            self.prefix / "bin" / "millraced", "--config", example, "--check",
            "--set", f'plugins.path=["{root}/usr/lib/millrace/plugins"]',
        )  # fmt: skip
        self.assertIn("the configuration is good", checked)

    def abi(self) -> tuple[str, str]:
        header = (self.prefix / "include" / "millrace" / "abi.h").read_text()
        major, minor = (
            re.search(rf"define MILLRACE_ABI_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR")
        )
        return major, minor

    def test_plugin_new_makes_plugins_that_one_command_builds_tests_and_packages(self):
        for kind, name, compiler in (
            ("operators", "page_views", self.options.other_compiler),
            ("compression", "my_codec", self.options.compiler),
        ):
            with self.subTest(kind=kind):
                folder = Path(tempfile.mkdtemp(dir=self.folder)) / name
                made = self.tool("plugin", "new", name, "--kind", kind.removesuffix("s"),
                                 "--into", folder)  # fmt: skip
                self.assertIn(f"made {folder}", made)
                (command,) = re.findall(r"^  \((cd .* cmake --workflow .*)\)$", made, re.MULTILINE)
                self.assertIn("100% tests passed", run(
                    "bash", "-euo", "pipefail", "-c", command.replace("clang++-19", compiler)))  # fmt: skip
                # By what the guide asks for, which is no make.
                self.assertTrue((folder / "build" / "build.ninja").exists())
                plugin = folder / "build" / "plugins" / kind / f"{name}.so"
                self.assert_fits(plugin)
                self.assertIn(f"org.example.{kind}.{name}", self.tool("plugin", "show", plugin))
                self.assert_packages_itself(folder / "build", kind, name)

    def test_a_new_plugin_compiles_whatever_its_name(self):
        """Also that of a class of the SDK, which it would be in the place of."""
        for name in ("operator", "result", "emitter", "plugin", "class", "a_"):
            with self.subTest(name=name):
                folder = Path(tempfile.mkdtemp(dir=self.folder)) / name
                self.tool("plugin", "new", name, "--kind", "operators", "--into", folder)
                include = self.prefix / "include"
                run(self.options.compiler, "-std=c++23", "-fsyntax-only", f"-I{include}", folder / f"{name}.cc")

    def test_the_readme_can_be_followed_word_for_word(self):
        home = Path(tempfile.mkdtemp(dir=self.folder))
        (home / "millrace").symlink_to(self.prefix)
        kafka, http = free_addresses(2)
        script = shell_of((self.options.source / "sdk" / "README.md").read_text(), README_SECTIONS)
        for theirs, ours in (
            ("clang++-19", self.options.compiler),
            ("127.0.0.1:9644", http),
            ("[plugins]\n", f'[transport.kafka]\nlisten = "{kafka}"\n'
                            f'[transport.http]\nlisten = "{http}"\n[plugins]\n'),
        ):
            self.assertIn(theirs, script)
            script = script.replace(theirs, ours)
        done = subprocess.run(
            ["bash", "-c", README_SHELL.format(kafka=kafka, http=http) + script],
            cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=os.environ | {"HOME": str(home), "PATH": f"{home}/millrace/bin:{os.environ['PATH']}"},
            timeout=README_SECONDS_MAX,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for said in ("fits this kernel", "the configuration is good", '{"status":"ok"}', "about\t1", "home\t2"):
            self.assertIn(said, done.stdout, done.stdout + done.stderr)

    def test_plugin_new_touches_nothing_that_is_there(self):
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for words, text in (
            (("here", "--kind", "operators", "--into", folder), "is there already"),
            (("Here", "--kind", "operators"), "expected a name"),
            (("here", "--kind", "operatros"), "nearest known: operators"),
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
        data = Path(tempfile.mkdtemp(dir=self.folder))
        with Daemon(
            self, data,
            "--set", f"broker.data={data}/data",
            "--set", "transport.kafka.listen=127.0.0.1:0",
            "--set", "transport.http.listen=127.0.0.1:0",
            "--set", f'plugins.path=["{plugins}"]',
            "--set", "compression.deflate.level=9",
        ) as daemon:  # fmt: skip
            return daemon.log().splitlines()

    def test_examples_run_and_are_replaced_while_they_run(self):
        """By the build of the other compiler: it goes on from the position and the counts of the
        one before, and no record comes out twice or not at all."""
        plugins = self.build_examples(self.options.compiler)
        others = self.build_examples(self.options.other_compiler)
        data = Path(tempfile.mkdtemp(dir=self.folder))
        config = data / "millrace.toml"
        config.write_text(EXAMPLE_BROKER.format(data=data, plugins=plugins.parent))
        with Daemon(self, data, "--config", config) as daemon:
            daemon.tool("topic", "create", "lines", "--partitions", "1")
            daemon.send("to be or not\nto be\nnothing\n")
            self.assertEqual(
                daemon.counts(6), [("to", 1), ("be", 1), ("or", 1), ("not", 1), ("to", 2), ("be", 2)]
            )
            for step in ("word_count", "contains"):
                daemon.stream("replace", "words", step, others / f"{step}.so")
            steps = daemon.stream("describe", "words")
            self.assertNotIn(str(plugins), steps)
            self.assertEqual(steps.count(f"{data}/data/.operators/"), 2, steps)
            daemon.send("be\nnothing\nbe\n")
            self.assertEqual(daemon.counts(8)[6:], [("be", 3), ("be", 4)])

    def test_a_bank_account_is_kept_over_a_restart_with_another_build(self):
        data = Path(tempfile.mkdtemp(dir=self.folder))
        config = data / "millrace.toml"
        plugins = self.build_examples(self.options.compiler)
        config.write_text(EXAMPLE_BROKER.format(data=data, plugins=plugins.parent))
        with Daemon(self, data, "--config", config) as daemon:
            self.assertEqual(daemon.account("alice", "deposit 500"), ("500", "1"))
            self.assertEqual(daemon.account("alice", "withdraw 200", 1), ("300", "2"))
            self.assertEqual(
                daemon.account("alice", "withdraw 200", 1),
                ("INVALID_UPDATE_VERSION", '"alice" has version 2, expected 1'),
            )
            self.assertEqual(
                daemon.account("alice", "withdraw 301"), ("POLICY_VIOLATION", "there are 300")
            )
        others = self.build_examples(self.options.other_compiler)
        config.write_text(EXAMPLE_BROKER.format(data=data, plugins=others.parent))
        with Daemon(self, data, "--config", config) as daemon:
            self.assertEqual(daemon.account("alice", "withdraw 300", 2), ("0", "3"))

    def test_a_bank_account_goes_on_as_another_build_while_it_is_used(self):
        """By the build of the other compiler and back, with deposits all the time: each counts once."""
        plugins = self.build_examples(self.options.compiler)
        others = self.build_examples(self.options.other_compiler)
        data = Path(tempfile.mkdtemp(dir=self.folder))
        config = data / "millrace.toml"
        config.write_text(EXAMPLE_BROKER.format(data=data, plugins=plugins.parent))
        with Daemon(self, data, "--config", config) as daemon:
            versions: list[int] = []
            ending = threading.Event()

            def deposit():
                while not ending.is_set():
                    balance, version = daemon.account("alice", "deposit 5")
                    self.assertEqual(int(balance), 5 * int(version))
                    versions.append(int(version))

            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                depositing = pool.submit(deposit)
                try:
                    for build in (others, plugins, others):
                        seen = len(versions)
                        daemon.until(lambda seen=seen: len(versions) > seen + 20, "20 deposits")
                        said = daemon.tool("aggregate", "--admin", daemon.address("http"),
                                           "replace", "accounts", build / "bank.so")  # fmt: skip
                        self.assertIn(str(build / "bank.so"), said)
                finally:
                    ending.set()
                depositing.result()
            self.assertEqual(versions, list(range(1, len(versions) + 1)))
            self.assertIn(str(others / "bank.so"), daemon.tool(
                "aggregate", "--admin", daemon.address("http"), "list"))  # fmt: skip

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
