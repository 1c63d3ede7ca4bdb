#!/usr/bin/env python3
"""abi_lock.py on small trees: what it lets pass, and what it stops."""

import io
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path

from abi_lock import main

ABI = """#define MILLRACE_ABI_MAJOR {major}
#define MILLRACE_ABI_MINOR {minor}
#define MILLRACE_DESCRIPTOR_SYMBOL "millrace_plugin_v{symbol}"
"""


class AbiLockTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = Path(folder.name)
        self.headers = self.source / "sdk" / "include" / "millrace"
        (self.headers / "testing").mkdir(parents=True)
        self.abi(1, 0)
        self.write("storage.h", "class Storage;\n")
        self.write("testing/kit.h", "class Kit;\n")
        self.assertEqual(self.run_tool("--update", "same"), (0, ""))

    def write(self, name: str, text: str):
        (self.headers / name).write_text(text)

    def abi(self, major: int, minor: int, symbol: int | None = None):
        self.write("abi.h", ABI.format(major=major, minor=minor, symbol=symbol or major))

    def run_tool(self, *arguments: str) -> tuple[int, str]:
        output = io.StringIO()
        with redirect_stdout(output):
            code = main(["--source", str(self.source), *arguments])
        return code, output.getvalue()

    def assert_fails(self, expected: str, *arguments: str):
        code, output = self.run_tool(*arguments)
        self.assertEqual(code, 1)
        self.assertIn(expected, output)

    def test_an_unchanged_sdk_passes(self):
        self.assertEqual(self.run_tool(), (0, ""))

    def test_a_changed_header_fails_until_it_is_the_same(self):
        self.write("storage.h", "class Storage {};\n")
        self.assert_fails("storage.h: changed\n")
        self.assertEqual(self.run_tool("--update", "same"), (0, ""))
        self.assertEqual(self.run_tool(), (0, ""))

    def test_new_and_removed_headers_fail(self):
        self.write("tape.h", "class Tape;\n")
        (self.headers / "storage.h").unlink()
        self.assert_fails(
            "storage.h: in the lock, not in the SDK\ntape.h: not in the lock\n"
        )

    def test_testing_kits_may_change(self):
        self.write("testing/kit.h", "class Kit {};\n")
        self.assertEqual(self.run_tool(), (0, ""))

    def test_minor_wants_the_minor_bumped(self):
        self.write("storage.h", "class Storage {};\n")
        self.assert_fails("makes ABI 1.1, found 1.0", "--update", "minor")
        self.abi(1, 1)
        self.assert_fails("abi.h: ABI 1.1, the lock says 1.0\n")
        self.assert_fails("makes ABI 1.0, found 1.1", "--update", "same")
        self.assertEqual(self.run_tool("--update", "minor"), (0, ""))
        self.assertEqual(self.run_tool(), (0, ""))

    def test_major_wants_the_symbol_renamed(self):
        self.abi(2, 0, symbol=1)
        self.assert_fails("millrace_plugin_v2, found millrace_plugin_v1", "--update", "major")
        self.abi(2, 0)
        self.assertEqual(self.run_tool("--update", "major"), (0, ""))
        self.assertEqual(self.run_tool(), (0, ""))


if __name__ == "__main__":
    unittest.main()
