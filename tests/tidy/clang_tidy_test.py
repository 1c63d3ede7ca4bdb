#!/usr/bin/env python3
"""clang_tidy.py finds what clang-tidy finds, and looks again at a file only when that may end otherwise."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).with_name("clang_tidy.py")

CLEAN = "int* none() { return nullptr; }\n"
FINDING = "int* none() { return 0; }\n"


class ClangTidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        self.root = self.checkout("first")

    def checkout(self, name: str) -> Path:
        root = self.home / name
        (root / "build").mkdir(parents=True)
        command = f"clang++-19 -I{root} -o a.o -c {root}/a.cc"
        entry = {"directory": str(root / "build"), "file": str(root / "a.cc"), "command": command}
        (root / "build" / "compile_commands.json").write_text(json.dumps([entry]))
        (root / ".clang-tidy").write_text("Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\n")
        (root / "a.cc").write_text(CLEAN)
        return root

    def look(self, *options: str, root: Path | None = None) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, TOOL, "--build", "build", *options, "a.cc", "template.cc"],
            cwd=root or self.root,
            env=os.environ | {"XDG_CACHE_HOME": str(self.home / "cache")},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    def expect_looked_at(self, root: Path | None = None):
        self.assertEqual(self.look(root=root), (0, "clang-tidy, of 1 files: 1 looked at\n"))

    def expect_known(self, root: Path | None = None):
        self.assertEqual(self.look(root=root), (0, "clang-tidy, of 1 files: 1 unchanged since they were clean\n"))

    def expect_finding(self):
        code, output = self.look()
        self.assertEqual(code, 1)
        self.assertIn("[modernize-use-nullptr,-warnings-as-errors]", output)
        self.assertIn("1 with findings", output)

    def test_a_clean_file_is_looked_at_once_in_all_checkouts(self):
        self.expect_looked_at()
        self.expect_known()
        self.expect_known(self.checkout("second"))

    def test_a_finding_is_told_each_time(self):
        (self.root / "a.cc").write_text(FINDING)
        self.expect_finding()
        self.expect_finding()

    def test_a_change_of_what_it_includes_counts(self):
        (self.root / "a.cc").write_text('#include "a.h"\n')
        (self.root / "a.h").write_text("struct A;\n")
        self.expect_looked_at()
        (self.root / "a.h").write_text("struct B;\n")
        self.expect_looked_at()

    def test_a_comment_that_allows_a_finding_counts(self):
        (self.root / "a.cc").write_text(FINDING.replace("\n", "  // NOLINT\n"))
        self.expect_looked_at()
        (self.root / "a.cc").write_text(FINDING)
        self.expect_finding()

    def test_a_change_of_the_checks_counts(self):
        self.expect_looked_at()
        with (self.root / ".clang-tidy").open("a") as checks:
            checks.write("# more\n")
        self.expect_looked_at()

    def test_a_file_that_cannot_be_read_is_a_finding(self):
        (self.root / "a.cc").write_text('#include "missing.h"\n')
        code, output = self.look()
        self.assertEqual(code, 1)
        self.assertIn("missing.h", output)

    def test_no_file_is_begun_after_the_time_is_over(self):
        self.assertEqual(
            self.look("--seconds", "0.000001"), (0, "clang-tidy, of 1 files: 1 left for lack of time\n")
        )


if __name__ == "__main__":
    unittest.main()
