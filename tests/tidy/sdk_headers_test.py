#!/usr/bin/env python3
"""Every public header compiles on its own: whoever includes one need not know what to include
before it.

sdk_headers_test.py --source DIR --compiler CXX"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = ["-std=c++23", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "-"]


def complaint(compiler: str, folder: Path, header: str) -> str:
    """What the compiler says of a file that includes just this header; empty if nothing."""
    done = subprocess.run(
        [compiler, f"-I{folder}", *FLAGS],
        input=f"#include <{header}>\n",
        capture_output=True,
        text=True,
    )
    return done.stderr if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--compiler", required=True)
    arguments = parser.parse_args()
    folder = arguments.source / "sdk" / "include"
    headers = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.h"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(
            pool.map(lambda header: complaint(arguments.compiler, folder, header), headers)
        )
    failed = [(header, text) for header, text in zip(headers, complaints, strict=True) if text]
    for header, text in failed:
        print(f"<{header}> does not compile alone; include in it what it uses:\n{text}")
    print(f"{len(headers)} headers: {len(failed)} do not compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
