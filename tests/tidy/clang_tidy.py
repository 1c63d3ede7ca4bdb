#!/usr/bin/env python3
"""Runs clang-tidy over files, as many at once as there are processors. A file without findings is not looked
at again until something of it changes: its text with all that it includes, its compiler options, the checks
or clang-tidy itself. What was found clean is kept under ~/.cache/millrace/clang-tidy, a file of no bytes for
each, so that several checkouts share it.

clang_tidy.py --build DIR [--seconds N] FILE...    DIR/compile_commands.json says how each is compiled; one that
                                                   no target compiles is passed over
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path

TIDY = "clang-tidy-19"


class Verdict(Enum):
    CLEAN = "looked at"
    FINDINGS = "with findings"
    KNOWN = "unchanged since they were clean"
    NO_TIME = "left for lack of time"


class Linter:
    def __init__(self, build: Path, seconds: float | None):
        self._build = build.resolve()
        self._root = Path.cwd()
        self._deadline = time.monotonic() + seconds if seconds else None
        self._commands = {
            entry["file"]: entry for entry in json.loads((build / "compile_commands.json").read_text())
        }
        self._known = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "millrace", "clang-tidy")
        self._known.mkdir(parents=True, exist_ok=True)
        self._rules = b"".join(
            (
                subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout,
                (self._root / ".clang-tidy").read_bytes(),
            )
        )

    def compiled(self, paths: list[str]) -> list[str]:
        """Those of `paths` that a target compiles: a template for others has no command line."""
        return [path for path in paths if str(self._root / path) in self._commands]

    def look_at(self, path: str) -> Verdict:
        if self._deadline and time.monotonic() >= self._deadline:
            return Verdict.NO_TIME
        digest = self._digest(path)
        if digest and (self._known / digest).exists():
            return Verdict.KNOWN
        found = subprocess.run(
            [TIDY, "--quiet", "-p", self._build, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if found.returncode:
            print(found.stdout, "" if found.stdout else found.stderr, sep="", end="", flush=True)
            return Verdict.FINDINGS
        if digest:
            (self._known / digest).touch()
        return Verdict.CLEAN

    def _digest(self, path: str) -> str | None:
        """Of all that clang-tidy's findings can depend on; None when the compiler cannot read the file."""
        entry = self._commands[str(self._root / path)]
        options = shlex.split(entry["command"])
        at = options.index("-o")
        del options[at : at + 2]
        options.remove("-c")
        # Comments stay in, because of NOLINT; line markers go, because of the folder that they name.
        read = subprocess.run([*options, "-E", "-CC", "-P"], cwd=entry["directory"], capture_output=True)
        if read.returncode:
            return None
        digest = hashlib.sha256(self._rules)
        digest.update(" ".join(options).replace(str(self._root), "").encode())
        digest.update(read.stdout)
        return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--seconds", type=float, help="begin no file after so many")
    parser.add_argument("files", nargs="+", metavar="FILE", help="relative to the working directory, the checkout")
    arguments = parser.parse_args()

    linter = Linter(arguments.build, arguments.seconds)
    files = linter.compiled(arguments.files)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        verdicts = list(pool.map(linter.look_at, files))
    counted = (f"{verdicts.count(verdict)} {verdict.value}" for verdict in Verdict if verdict in verdicts)
    print(f"clang-tidy, of {len(files)} files: {', '.join(counted)}")
    return Verdict.FINDINGS in verdicts


if __name__ == "__main__":
    sys.exit(main())
