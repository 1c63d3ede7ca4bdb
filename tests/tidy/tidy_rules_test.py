#!/usr/bin/env python3
"""Each rule of tidy_test.py finds what it is for, and leaves alone what it is not for."""

import tempfile
import unittest
from pathlib import Path

import tidy_test as tidy


class RulesTest(unittest.TestCase):
    def found(self, rule, files: dict[str, str], compiled: tuple[str, ...] = ()) -> list[str]:
        """'path:line' of what the rule finds in a tree of these files."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            tree = tidy.Tree(root, frozenset(compiled))
            return [f"{finding.path}:{finding.line}" for finding in sorted(rule(tree))]

    def test_a_plugin_includes_the_sdk_and_its_own_folder(self):
        files = {
            "kernel/env/file.h": "",
            "plugins/storage/filelog/segment.h": "",
            "plugins/storage/filelog/index/index.h": "",
            "plugins/storage/memory/log.h": "",
            "plugins/storage/filelog/segment.cc": '#include "segment.h"\n'
            "#include <vector>\n"
            "#include <millrace/storage.h>\n"
            '#include "index/index.h"\n'
            '#include "kernel/env/file.h"\n'
            '#include "../memory/log.h"\n'
            "#include <kernel/env/file.h>\n"
            "#include <millrace/testing/fake_host.h>\n",
        }
        self.assertEqual(
            self.found(tidy.includes_keep_their_direction, files),
            [f"plugins/storage/filelog/segment.cc:{line}" for line in (5, 6, 7, 8)],
        )

    def test_the_kernel_includes_no_plugin_and_the_sdk_nobody(self):
        files = {
            "kernel/host/loader.h": "",
            "kernel/engine.cc": '#include "kernel/host/loader.h"\n#include "plugins/a/b/c.h"\n',
            "plugins/a/b/c.h": "",
            "sdk/src/x.h": "",
            "sdk/src/x.cc": '#include "x.h"\n#include "kernel/host/loader.h"\n',
        }
        self.assertEqual(
            self.found(tidy.includes_keep_their_direction, files),
            ["kernel/engine.cc:2", "sdk/src/x.cc:2"],
        )

    def test_packages_with_one_user(self):
        files = {
            "kernel/env/network.cc": "#include <boost/asio/write.hpp>\n",
            "kernel/config/parse.cc": "#include <toml++/toml.h>\n#include <boost/asio.hpp>\n",
            "plugins/a/b/c.cc": "#include <toml++/toml.h>\n",
            "tests/unit/kernel/env/network_test.cc": "#include <boost/asio/write.hpp>\n",
        }
        self.assertEqual(
            self.found(tidy.packages_stay_with_their_one_user, files),
            ["kernel/config/parse.cc:2", "plugins/a/b/c.cc:1"],
        )

    def test_plugins_do_not_name_sockets_threads_or_clocks(self):
        bad = (
            "#include <sys/socket.h>\n#include <thread>\n#include <unistd.h>\n"
            "auto now = std::chrono::system_clock::now();\nthread_local int x;\n"
        )
        good = (
            "#include <chrono>\n#include <string>\n// not a steady_clock\nstd::chrono::seconds s;\n"
        )
        files = {"plugins/a/b/bad.cc": bad, "plugins/a/b/good.cc": good, "kernel/env/c.cc": bad}
        self.assertEqual(
            self.found(tidy.plugins_reach_the_outside_through_the_environment, files),
            [f"plugins/a/b/bad.cc:{line}" for line in (1, 2, 3, 4, 5)],
        )

    def test_a_source_that_no_target_compiles(self):
        files = {"kernel/a.cc": "", "kernel/b.cc": "", "sdk/template/plugin.cc": ""}
        self.assertEqual(
            self.found(tidy.every_source_is_compiled, files, compiled=("kernel/a.cc",)),
            ["kernel/b.cc:1"],
        )

    def test_a_fuzzer_that_its_preset_does_not_build(self):
        files = {
            "tests/fuzz/CMakeLists.txt": "millrace_add_fuzzer(request LIBRARIES x)\n",
            "tests/fuzz/request.cc": "",
            "tests/fuzz/requests.cc": "",
        }
        self.assertEqual(
            self.found(tidy.every_source_is_compiled, files), ["tests/fuzz/requests.cc:1"]
        )

    def test_skips_need_a_reason_and_reasons_a_skip(self):
        files = {
            "tests/unit/a_test.cc": "TEST(A, Listed) {\n  GTEST_SKIP();\n}\n"
            "TEST(A, Forgotten) {\n  GTEST_SKIP();\n}\nTEST(A, DISABLED_Off) {}\n",
            "tests/clients/test_b.py": "@pytest.mark.skip\ndef test_forgotten():\n    pass\n",
            "tests/skipped.txt": "# comment\n"
            "tests/unit/a_test.cc: A.Listed: until the cleaner exists\n"
            "tests/unit/a_test.cc: A.Gone: no longer skipped\n"
            "tests/unit/a_test.cc: A.NoReason\n",
        }
        self.assertEqual(
            self.found(tidy.skips_are_listed_with_a_reason, files),
            [
                "tests/clients/test_b.py:1",
                "tests/skipped.txt:3",
                "tests/skipped.txt:4",
                "tests/unit/a_test.cc:5",
                "tests/unit/a_test.cc:7",
            ],
        )

    def test_sleeping_in_tests(self):
        files = {
            "tests/unit/a_test.cc": "std::this_thread::sleep_for(1s);\nusleep(10);\n"
            "co_await sleep(shard, 5s);  // the simulated clock\nrun(shard.sleep(5s));\n",
            "tests/clients/test_b.py": "time.sleep(1)\n# time.sleep(1) would be wrong\n",
            "tests/bench/figures/cases.py": "time.sleep(IDLE_SECONDS)\n",
            "tests/bench/figures/other.py": "time.sleep(IDLE_SECONDS)\n",
            "tests/run": "sleep 1\nwait $pid\n",
        }
        self.assertEqual(
            self.found(tidy.tests_do_not_sleep, files),
            [
                "tests/bench/figures/other.py:1",
                "tests/clients/test_b.py:1",
                "tests/run:1",
                "tests/unit/a_test.cc:1",
                "tests/unit/a_test.cc:2",
            ],
        )

    def test_paths_of_one_machine(self):
        files = {
            "README.md": "see /home/ann/src\nand /usr/lib/millrace, $HOME/work/x, /brokers/ids\n"
        }
        self.assertEqual(self.found(tidy.no_path_is_of_one_machine, files), ["README.md:1"])

    def test_documents_that_name_what_is_gone(self):
        files = {
            "a/README.md": "[up](../README.md), [a heading](#here), [elsewhere](https://example.org/x.md)\n"
            "[gone](gone.md#there)\n`b.cc`, `a/b.cc` and `page_views.cc`\n`c.h`\n",
            "README.md": "[a](a) [b](a/b.cc)\n",
            "a/b.cc": "",
            "packaging/doc/index.md": "[made](millrace.toml.html)\n[not](index.html)\n",
        }
        self.assertEqual(
            self.found(tidy.documents_name_what_is_there, files),
            ["a/README.md:2", "a/README.md:4", "packaging/doc/index.md:2"],
        )

    def test_the_budget_and_the_runner_agree(self):
        files = {
            "tests/BUDGET": "# part seconds suites\n"
            "build 600 ci\nunit 2200 ci\nsoak 9000 full\ngone 1 ci\n",
            "tests/run": "part_build() { :; }\npart_unit() {\n:\n}\n"
            "part_soak() { :; }\npart_idle() { :; }\n",
        }
        # line 1 twice: a part that no suite runs, and the sum
        self.assertEqual(
            self.found(tidy.the_parts_of_ci_fit_their_time, files),
            ["tests/BUDGET:1", "tests/BUDGET:1", "tests/BUDGET:5"],
        )


if __name__ == "__main__":
    unittest.main()
