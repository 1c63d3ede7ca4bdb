#!/usr/bin/env python3
"""Holds the plugin ABI and the public headers together: sdk/abi.lock records the ABI of abi.h and the
hash of every header that plugins share with the kernel. A changed header fails until its author says
what the change means for plugins that are already built.

abi_lock.py                   check
abi_lock.py --update same     it changes nothing that is compiled into them: comments, new free functions
abi_lock.py --update minor    they still load: MILLRACE_ABI_MINOR is one more
abi_lock.py --update major    they must be rebuilt: MILLRACE_ABI_MAJOR is one more, the symbol is renamed

Testing kits (millrace/testing/) are not part of the ABI."""

import argparse
import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HEADER = """\
# The plugin ABI, and the headers that make it. Written by tests/plugins/abi_lock.py --update same|minor|major.
"""


@dataclass(frozen=True)
class Lock:
    major: int
    minor: int
    hashes: dict[str, str]

    def text(self) -> str:
        lines = [f"{digest}  {name}\n" for name, digest in sorted(self.hashes.items())]
        return f"{HEADER}abi {self.major}.{self.minor}\n" + "".join(lines)

    @staticmethod
    def parse(text: str) -> "Lock":
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        major, minor = lines[0].removeprefix("abi ").split(".")
        return Lock(int(major), int(minor), {name: h for h, name in map(str.split, lines[1:])})


class Sdk:
    """The SDK as it is in a source tree."""

    def __init__(self, source: Path):
        self.headers = source / "sdk" / "include" / "millrace"
        self.lock_path = source / "sdk" / "abi.lock"

    def current(self) -> Lock:
        abi = (self.headers / "abi.h").read_text()
        return Lock(
            int(self._define(abi, "MILLRACE_ABI_MAJOR")),
            int(self._define(abi, "MILLRACE_ABI_MINOR")),
            {
                path.relative_to(self.headers).as_posix(): hashlib.sha256(
                    path.read_bytes()
                ).hexdigest()
                for path in self.headers.rglob("*.h")
                if path.relative_to(self.headers).parts[0] != "testing"
            },
        )

    def symbol(self) -> str:
        abi = (self.headers / "abi.h").read_text()
        return self._define(abi, "MILLRACE_DESCRIPTOR_SYMBOL").strip('"')

    @staticmethod
    def _define(text: str, name: str) -> str:
        match = re.search(rf"^#define {name} (\S+)$", text, re.MULTILINE)
        if not match:
            sys.exit(f"abi.h: expected a line '#define {name} VALUE', found none")
        return match[1]


def differences(locked: Lock, current: Lock) -> list[str]:
    found = []
    for name in sorted(locked.hashes.keys() | current.hashes.keys()):
        if name not in current.hashes:
            found.append(f"{name}: in the lock, not in the SDK")
        elif name not in locked.hashes:
            found.append(f"{name}: not in the lock")
        elif locked.hashes[name] != current.hashes[name]:
            found.append(f"{name}: changed")
    if (locked.major, locked.minor) != (current.major, current.minor):
        found.append(
            f"abi.h: ABI {current.major}.{current.minor}, the lock says {locked.major}.{locked.minor}"
        )
    return found


def check(sdk: Sdk) -> int:
    found = differences(Lock.parse(sdk.lock_path.read_text()), sdk.current())
    for line in found:
        print(line)
    if found:
        print(
            "\nWhat does this mean for plugins that are already built? Say so, with "
            "--update same|minor|major:\n" + __doc__.split("\n\n")[1]
        )
    return 1 if found else 0


def expected_abi(locked: Lock, change: str) -> tuple[int, int]:
    return {
        "same": (locked.major, locked.minor),
        "minor": (locked.major, locked.minor + 1),
        "major": (locked.major + 1, 0),
    }[change]


def update(sdk: Sdk, change: str) -> int:
    current = sdk.current()
    if sdk.lock_path.exists():
        expected = expected_abi(Lock.parse(sdk.lock_path.read_text()), change)
        if (current.major, current.minor) != expected:
            print(
                f"abi.h: a change of kind '{change}' makes ABI {expected[0]}.{expected[1]}, found "
                f"{current.major}.{current.minor}; edit MILLRACE_ABI_MAJOR and MILLRACE_ABI_MINOR first"
            )
            return 1
    if sdk.symbol() != f"millrace_plugin_v{current.major}":
        print(
            f"abi.h: ABI {current.major} is exported as millrace_plugin_v{current.major}, found "
            f"{sdk.symbol()}; edit MILLRACE_DESCRIPTOR_SYMBOL and MILLRACE_PLUGIN first"
        )
        return 1
    sdk.lock_path.write_text(current.text())
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--update", choices=["same", "minor", "major"])
    chosen = parser.parse_args(arguments)
    sdk = Sdk(chosen.source)
    return update(sdk, chosen.update) if chosen.update else check(sdk)


if __name__ == "__main__":
    sys.exit(main())
