#!/usr/bin/env python3
"""Who has what the product needs, and not what its tests need, builds the product.

configure_test.py --source DIR --compiler CXX"""

import argparse
import subprocess
import sys
import tempfile
import unittest
from typing import ClassVar


class ConfigureTest(unittest.TestCase):
    options: ClassVar[argparse.Namespace]

    def configure(self, *words: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory(prefix="millrace-configure-") as folder:
            return subprocess.run(
                ["cmake", "-G", "Ninja", "-S", self.options.source, "-B", folder,
                 f"-DCMAKE_CXX_COMPILER={self.options.compiler}", *words],
                capture_output=True, text=True,
            )  # fmt: skip

    def test_without_googletest_the_tests_are_left_out_and_said(self):
        done = self.configure("-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("-DMILLRACE_TESTS=ON", done.stdout)

    def test_who_asks_for_the_tests_hears_what_is_missing(self):
        done = self.configure("-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON", "-DMILLRACE_TESTS=ON")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("GTest", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--compiler", required=True)
    ConfigureTest.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
