#!/usr/bin/env python3
"""The units of systemd: that they are right, that what they allow the broker is little, and that they
do not contradict what the daemon does."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

EXPOSURE_MAX = 2.5
SOURCE = Path(__file__).resolve().parents[2]
UNITS = SOURCE / "packaging" / "systemd"
ONE = "millrace.service"
SEVERAL = "millrace@.service"


def analyze(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *map(str, words)], capture_output=True, text=True
    )


def settings(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (UNITS / name).read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found.setdefault(key, []).append(value)
    return found


class UnitsTest(unittest.TestCase):
    def test_they_are_right(self):
        """With another program in place of the broker, which is installed nowhere here."""
        with tempfile.TemporaryDirectory() as folder:
            for name in (ONE, SEVERAL):
                unit = Path(folder) / name
                unit.write_text((UNITS / name).read_text().replace("/usr/bin/millraced", "/bin/true"))
            for unit in (ONE, SEVERAL.replace("@", "@one")):
                found = analyze("verify", Path(folder) / unit)
                self.assertEqual((found.returncode, found.stderr), (0, ""), unit)

    def test_they_allow_little(self):
        threshold = f"--threshold={EXPOSURE_MAX * 10:.0f}"
        for name in (ONE, SEVERAL):
            found = analyze("security", "--offline=true", threshold, UNITS / name)
            self.assertEqual(found.returncode, 0, found.stdout)

    def test_a_unit_that_allows_all_would_be_found(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = Path(folder) / ONE
            unit.write_text("[Service]\nExecStart=/bin/true\n")
            found = analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX * 10:.0f}", unit)
            self.assertNotEqual(found.returncode, 0)

    def test_one_of_several_brokers_is_run_as_a_single_one_is(self):
        several = {
            key: [value.replace("/%i/", "/") for value in values]
            for key, values in settings(SEVERAL).items()
        }
        one = settings(ONE)
        del several["Description"], one["Description"]
        self.assertEqual(several, one)

    def test_the_storage_may_ask_what_is_in_memory(self):
        """Else each page is tried by itself."""
        groups: dict[str, list[str]] = {}
        for line in analyze("syscall-filter").stdout.splitlines():
            if line.startswith("@"):
                members = groups.setdefault(line.strip(), [])
            elif line.startswith("    ") and not line.strip().startswith("#"):
                members.append(line.strip())

        def calls(name: str) -> set[str]:
            if not name.startswith("@"):
                return {name}
            return set().union(*(calls(member) for member in groups[name]))

        allowed: set[str] = set()
        for value in settings(ONE)["SystemCallFilter"]:
            named = set().union(*(calls(name) for name in value.removeprefix("~").split()))
            allowed = allowed - named if value.startswith("~") else allowed | named
        self.assertEqual({"mmap", "mincore", "munmap", "preadv2", "fadvise64"} - allowed, set())

    def test_codes_that_prevent_a_restart_are_those_that_a_restart_cannot_help(self):
        header = (SOURCE / "kernel" / "daemon" / "arguments.h").read_text()
        codes = {name: int(code) for name, code in re.findall(r"^  (\w+) = (\d+),", header, re.M)}
        wanted = {codes[name] for name in ("usage", "bad_data", "bad_config")}
        prevented = settings(ONE)["RestartPreventExitStatus"][0].split()
        self.assertEqual(set(map(int, prevented)), wanted)


if __name__ == "__main__":
    unittest.main()
