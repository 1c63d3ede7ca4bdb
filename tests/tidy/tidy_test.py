#!/usr/bin/env python3
"""Rules about the sources as a whole, which no compiler checks: who includes whom, what is built,
what is skipped. Each rule is a function from the tree to findings; a finding names file, line and
remedy.

tidy_test.py --source DIR --build DIR    DIR/compile_commands.json says what is built"""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

CPP = (".h", ".cc")
UNVISITED = {".git", "build", "__pycache__", ".pytest_cache", ".cache"}


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(eq=False)
class Tree:
    """The source tree, and what the build compiles of it. Paths are relative to the root, with
    slashes."""

    root: Path
    compiled: frozenset[str]
    paths: list[str] = field(init=False)

    def __post_init__(self):
        self.paths = sorted(self._walk())

    def _walk(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name not in UNVISITED]
            for name in files:
                yield (Path(folder) / name).relative_to(self.root).as_posix()

    def under(self, *folders: str, suffixes: tuple[str, ...] = CPP) -> list[str]:
        starts = tuple(f"{folder}/" for folder in folders)
        return [path for path in self.paths if path.startswith(starts) and path.endswith(suffixes)]

    @cache
    def text(self, path: str) -> str:
        return (self.root / path).read_text(errors="replace")

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        return enumerate(self.text(path).splitlines(), 1)

    def code(self, path: str) -> Iterator[tuple[int, str]]:
        """Its lines without comments, whose words are nobody's business."""
        comment = "#" if path.endswith((".py", ".sh")) else "//"
        for number, line in self.lines(path):
            yield number, line.split(comment, 1)[0]

    def includes(self, path: str) -> Iterator[tuple[int, str, bool]]:
        """(line, what, whether in quotes) of each #include."""
        for number, line in self.lines(path):
            match = re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line)
            if match:
                yield number, match[1] or match[2], match[1] is not None


# --- Direction: sdk <- kernel, sdk <- plugins, nothing else ---


def home_of(path: str) -> str:
    """The folder whose files may include each other: a plugin's own, else sdk, kernel or tests."""
    parts = path.split("/")
    if parts[0] == "plugins":
        return "/".join(parts[:3])
    return parts[0]


# What a header in quotes may be found under, besides the folder of the including file.
QUOTED_MAY_START_WITH = {"sdk": (), "kernel": ("kernel/",), "plugins": ()}


def includes_keep_their_direction(tree: Tree) -> Iterator[Finding]:
    known = set(tree.paths)
    for path in tree.under("sdk", "kernel", "plugins"):
        home, part = home_of(path), path.split("/")[0]
        for line, target, quoted in tree.includes(path):
            if quoted:
                beside = os.path.normpath(PurePosixPath(path).parent / target)
                inside_home = beside in known and home_of(beside) == home
                spelt_from_root = target.startswith(QUOTED_MAY_START_WITH[part])
                if not (inside_home or spelt_from_root):
                    yield Finding(
                        path,
                        line,
                        f'"{target}" is not a file of {home}; include <millrace/…>, '
                        "or move what two share into the sdk",
                    )
            elif target.startswith(("kernel/", "plugins/", "tests/")):
                yield Finding(
                    path, line, f"<{target}> is not a public header; only <millrace/…> is"
                )
            elif target.startswith("millrace/testing/") and not path.startswith("sdk/"):
                yield Finding(path, line, f"<{target}> is for tests; the product must not need it")


# package header → the one folder that may include it
PACKAGES_WITH_ONE_USER = {
    r"toml\+\+/|toml\.hpp": "kernel/config",
    r"boost/asio\b": "kernel/env",
    r"boost/dll\b": "kernel/host",
    r"zookeeper": "plugins/coordination/zookeeper",
}


def packages_stay_with_their_one_user(tree: Tree) -> Iterator[Finding]:
    for path in tree.under("sdk", "kernel", "plugins", "tests"):
        for line, target, _ in tree.includes(path):
            for package, user in PACKAGES_WITH_ONE_USER.items():
                if re.match(package, target) and not path.startswith(
                    (f"{user}/", f"tests/unit/{user}/")
                ):
                    yield Finding(
                        path,
                        line,
                        f"<{target}> is included in {user} alone; use what {user} offers",
                    )


# --- The outside: plugins reach it through the environment ---

# A mutex is none of these: a storage plugin is called from several threads and guards what it has.
OUTSIDE_HEADERS = {
    "sockets": r"sys/(socket|epoll|select|sendfile|un)\.h|netinet/|arpa/|netdb\.h|poll\.h",
    "threads": r"(thread|condition_variable|future|semaphore|latch|barrier)$|pthread\.h",
    "clocks": r"(ctime$|time\.h|sys/time\.h)",
    "files": r"(fstream|filesystem)$|fcntl\.h|unistd\.h|sys/(stat|mman|uio|file)\.h",
}
OUTSIDE_NAMES = {
    "clocks": r"\b(system_clock|steady_clock|high_resolution_clock|clock_gettime|gettimeofday)\b",
    "threads": r"\bthread_local\b|\bstd::(j?thread|async)\b",
    "chance": r"\brandom_device\b|\bs?rand\(",
    "files": r"\b(std::(o|i)?fstream|fopen|std::filesystem::(exists|remove|rename|create_\w+))\b",
}
# The client library of ZooKeeper brings threads and sockets of its own.
OUTSIDE_ALLOWED = ("plugins/coordination/zookeeper/",)


def plugins_reach_the_outside_through_the_environment(tree: Tree) -> Iterator[Finding]:
    remedy = "a plugin takes it from the environment (millrace/environment.h, millrace/shard.h)"
    for path in tree.under("plugins"):
        if path.startswith(OUTSIDE_ALLOWED):
            continue
        for line, target, _ in tree.includes(path):
            for what, pattern in OUTSIDE_HEADERS.items():
                if re.match(pattern, target):
                    yield Finding(path, line, f"<{target}> is for {what}; {remedy}")
        for line, code in tree.code(path):
            for what, pattern in OUTSIDE_NAMES.items():
                if match := re.search(pattern, code):
                    yield Finding(path, line, f"'{match[0]}' is for {what}; {remedy}")


# --- What is built and run ---

# Built elsewhere: as a third party would, against the installed SDK; by the preset `fuzz` alone.
BUILT_AGAINST_INSTALLED_SDK = ("sdk/template/", "sdk/examples/")
FUZZERS = "tests/fuzz/"


def every_source_is_compiled(tree: Tree) -> Iterator[Finding]:
    for path in tree.under("sdk", "kernel", "plugins", "tests", suffixes=(".cc", ".cpp", ".c")):
        if path in tree.compiled or path.startswith(BUILT_AGAINST_INSTALLED_SDK):
            continue
        if not (path.startswith(FUZZERS) and is_a_fuzzer(tree, path)):
            yield Finding(
                path,
                1,
                "no target compiles it; add it to the CMakeLists.txt of its folder, or delete it",
            )


def is_a_fuzzer(tree: Tree, path: str) -> bool:
    """Whether the preset `fuzz` builds it."""
    declared = f"millrace_add_fuzzer({PurePosixPath(path).stem} "
    return declared in tree.text(f"{FUZZERS}CMakeLists.txt")


SKIPS = re.compile(
    r"\bGTEST_SKIP\b|\bTEST\w*\([^)]*\bDISABLED_|\bpytest\.(skip|xfail|importorskip)\b"
    r"|\bpytest\.mark\.(skip|skipif|xfail)\b|\bunittest\.skip|\bDISABLED\s+(TRUE|ON)\b"
)
TEST_NAME = re.compile(r"\bTEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\)|^\s*def (test_\w+)")
SKIP_LIST = "tests/skipped.txt"


def skips_are_listed_with_a_reason(tree: Tree) -> Iterator[Finding]:
    listed = {}
    for line, text in tree.lines(SKIP_LIST) if SKIP_LIST in tree.paths else ():
        if not text.strip() or text.startswith("#"):
            continue
        fields = [part.strip() for part in text.split(":", 2)]
        if len(fields) < 3 or not fields[2]:
            yield Finding(SKIP_LIST, line, "write FILE: TEST: reason")
        else:
            listed[fields[0], fields[1]] = line

    for path in tree.under("tests", "sdk", suffixes=(".cc", ".h", ".py", ".txt")):
        if path == SKIP_LIST or path.startswith("tests/tidy/"):
            continue
        for line, test in skipped_tests(tree, path):
            if listed.pop((path, test), None) is None:
                yield Finding(
                    path,
                    line,
                    f"skipped without a reason; make it run, or add the line "
                    f"'{path}: {test}: reason' to {SKIP_LIST}",
                )
    for (path, test), line in listed.items():
        yield Finding(SKIP_LIST, line, f"{path} does not skip {test} any more; delete this line")


def skipped_tests(tree: Tree, path: str) -> Iterator[tuple[int, str]]:
    """(line, name of the test it is in, or that follows a decorator) of each skip; a test counts
    once."""
    lines = list(tree.code(path))
    seen = set()
    for index, (number, code) in enumerate(lines):
        if not SKIPS.search(code):
            continue
        decorator = code.lstrip().startswith("@")
        around = lines[index:] if decorator else reversed(lines[: index + 1])
        match = next((found for _, text in around if (found := TEST_NAME.search(text))), None)
        name = "(file)" if match is None else match[3] or f"{match[1]}.{match[2]}"
        if name not in seen:
            seen.add(name)
            yield number, name


SLEEPS = re.compile(
    r"\bsleep_(for|until)\s*\(|\bu?sleep\s*\(\s*\d+\s*\)|\bnanosleep\s*\(|(?<!\w)::sleep\s*\("
    r"|\b(time|asyncio)\.sleep\s*\(|^\s*sleep\s+[\d$]|[;&|]\s*sleep\s+[\d$]"
)
# Where time is the subject: a pace to send at, an idle broker, members that stay for a while, links
# that are late.
MEASURES_TIME = (
    "tests/bench/load/paced.cc",
    "tests/bench/load/group_heartbeats.cc",
    "tests/bench/figures/cases.py",
    "tests/bench/figures/log_cases.py",
    "tests/clients/harness/churn.py",
    "tests/cluster/parts/proxy.py",
)


def tests_do_not_sleep(tree: Tree) -> Iterator[Finding]:
    scripts = ["tests/run", "packaging/quickstart", "packaging/lib/common.sh"]
    sources = tree.under(
        "tests", "sdk/testing", "sdk/include/millrace/testing", suffixes=(*CPP, ".py", ".sh")
    )
    for path in [*sources, *(script for script in scripts if script in tree.paths)]:
        if path.startswith("tests/tidy/") or path in MEASURES_TIME:
            continue
        for line, code in tree.code(path):
            if match := SLEEPS.search(code):
                yield Finding(
                    path,
                    line,
                    f"'{match[0].strip()}' waits for time to pass; wait for the event with a "
                    "deadline, or move the simulated clock",
                )


# --- Nothing of one machine ---

TEXT = (
    *CPP,
    ".py",
    ".sh",
    ".md",
    ".txt",
    ".cmake",
    ".json",
    ".toml",
    ".xml",
    ".java",
    ".in",
    ".kafka",
    ".service",
)
FOLDERS_OF_A_PERSON_OR_RUNNER = re.compile(
    r"(?<![\w.}$/])/(?:root|home|Users|work|workspace|mnt)/[\w.-]+"
)


def no_path_is_of_one_machine(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths:
        name = PurePosixPath(path).name
        if path.startswith(("tests/golden/", "tests/tidy/")) or not (
            path.endswith(TEXT) or "." not in name
        ):
            continue
        for line, text in tree.lines(path):
            match = FOLDERS_OF_A_PERSON_OR_RUNNER.search(text)
            found = match[0] if match else str(tree.root) if f"{tree.root}/" in text else None
            if found:
                yield Finding(
                    path,
                    line,
                    f"'{found}' exists on one machine; derive it from the source or build folder",
                )


# --- Documents name what is there ---

LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[\w-]+)?\)")
SOURCE_IN_TEXT = re.compile(r"`([\w./-]+\.(?:h|cc|py))`")
MADE_BY_THE_BUILD = re.compile(r"packaging/(?:doc|man)/millrace(?:\.toml)?\.(?:html|md)")
# What a reader makes by following sdk/README.md.
MADE_BY_THE_READER = {"page_views.cc", "page_views_test.cc"}


def documents_name_what_is_there(tree: Tree) -> Iterator[Finding]:
    names = {PurePosixPath(path).name for path in tree.paths} | MADE_BY_THE_READER
    for path in (path for path in tree.paths if path.endswith(".md")):
        for line, text in tree.lines(path):
            for target in LINK.findall(text):
                beside = os.path.normpath(PurePosixPath(path).parent / target)
                if not (tree.root / beside).exists() and not MADE_BY_THE_BUILD.fullmatch(beside):
                    yield Finding(path, line, f"there is no {beside}; link to what there is")
            for source in SOURCE_IN_TEXT.findall(text):
                if PurePosixPath(source).name not in names:
                    yield Finding(path, line, f"there is no file {source}; name the one that there is")


# --- The budget of CI ---

CI_SECONDS_MAX = 45 * 60


def the_parts_of_ci_fit_their_time(tree: Tree) -> Iterator[Finding]:
    budget, runner = "tests/BUDGET", "tests/run"
    total = 0
    defined = set(re.findall(r"^part_([\w-]+)\(\)", tree.text(runner), re.MULTILINE))
    for line, text in tree.lines(budget):
        if not text.strip() or text.startswith("#"):
            continue
        part, seconds, *suites = text.split()
        total += int(seconds) if "ci" in suites else 0
        if part not in defined:
            yield Finding(budget, line, f"{runner} has no function part_{part}")
        defined.discard(part)
    for part in sorted(defined):
        yield Finding(budget, 1, f"part_{part} of {runner} has no line here, so no suite runs it")
    if total > CI_SECONDS_MAX:
        yield Finding(
            budget, 1, f"the parts of ci add up to {total} s, more than {CI_SECONDS_MAX} s"
        )


RULES = (
    includes_keep_their_direction,
    packages_stay_with_their_one_user,
    plugins_reach_the_outside_through_the_environment,
    every_source_is_compiled,
    skips_are_listed_with_a_reason,
    tests_do_not_sleep,
    no_path_is_of_one_machine,
    documents_name_what_is_there,
    the_parts_of_ci_fit_their_time,
)


def compiled_sources(source: Path, build: Path) -> frozenset[str]:
    commands = json.loads((build / "compile_commands.json").read_text())
    files = (Path(entry["directory"], entry["file"]).resolve() for entry in commands)
    return frozenset(
        file.relative_to(source).as_posix() for file in files if file.is_relative_to(source)
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    arguments = parser.parse_args()
    source = arguments.source.resolve()
    tree = Tree(source, compiled_sources(source, arguments.build.resolve()))
    findings = [(rule.__name__, finding) for rule in RULES for finding in sorted(rule(tree))]
    for rule, finding in findings:
        print(f"{finding} [{rule}]")
    print(f"{len(RULES)} rules over {len(tree.paths)} files: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
