#!/usr/bin/env python3
"""The manual as the packages have it: every page that the tool writes of itself and every chapter of
packaging/doc is rendered, and man has nothing to say against it."""

import argparse
import gzip
import re
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
DOC = SOURCE / "packaging" / "doc"
arguments = argparse.Namespace()


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def render_reference(folder: Path) -> None:
    settings = {
        "tool": arguments.tool,
        "output": folder,
        "additions": SOURCE / "packaging" / "man",
        "date": "",
        "version": "1.2.3",
    }
    run("cmake", *(f"-D{key}={value}" for key, value in settings.items()), "-P", DOC / "render_manual.cmake")


def render_chapter(source: Path, folder: Path) -> None:
    settings = {
        "name": f"millrace-{source.stem}",
        "section": 7,
        "source": source,
        "man": folder / "man" / "man7" / f"millrace-{source.stem}.7.gz",
        "html": folder / "html" / f"{source.stem}.html",
        "date": "2026-01-02",
        "version": "1.2.3",
    }
    run("cmake", *(f"-D{key}={value}" for key, value in settings.items()), "-P", DOC / "render.cmake")


def shown(page: Path) -> tuple[str, str]:
    """As on a terminal of 80 columns, and what man warns of."""
    done = subprocess.run(
        ["man", "--warnings", "--local-file", page],
        capture_output=True, text=True, check=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"},
    )  # fmt: skip
    return done.stdout, done.stderr


class ManualTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        chapters = sorted(DOC.glob("*.md"))
        with ThreadPoolExecutor(4) as pool:
            tasks = [pool.submit(render_reference, cls.folder / "reference")]
            tasks += [pool.submit(render_chapter, chapter, cls.folder / "chapters") for chapter in chapters]
            for task in tasks:
                task.result()
            pages = sorted(cls.folder.glob("*/man/*/*.gz"))
            cls.pages = dict(zip((page.stem for page in pages), pool.map(shown, pages), strict=True))
        cls.files = pages

    def test_there_is_one_of_each_program_and_verb(self):
        listed = run(arguments.tool, "--help").split("Subcommands:\n")[1].split("\n\n")[0]
        verbs = re.findall(r"^  (\w+) ", listed, re.MULTILINE)
        self.assertGreater(len(verbs), 8)
        wanted = {"millrace.1", "millraced.8", "millrace.toml.5", *(f"millrace-{verb}.1" for verb in verbs)}
        self.assertLessEqual(wanted, set(self.pages))

    def test_man_warns_of_nothing(self):
        """But of a word that is wider than its column of a table, in chapters."""
        for name, (_, warnings) in self.pages.items():
            lines = warnings.splitlines()
            if name.endswith(".7"):
                lines = [line for line in lines if not line.endswith("can't break line")]
            self.assertEqual(lines, [], name)

    def test_each_has_a_name_and_fits_a_terminal(self):
        for name, (text, _) in self.pages.items():
            page = name.rsplit(".", 1)[0]
            self.assertRegex(text, rf"(?m)^NAME\n +{re.escape(page)} - \w", name)
            self.assertNotRegex(text, r"(?m)\\f|\*\*\w|^ *:   ", name)

    def test_pages_of_verbs_have_options_and_examples(self):
        for name, (text, _) in self.pages.items():
            if name.endswith(".1") and name != "millrace.1":
                for heading in ("SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
                    self.assertIn(f"\n{heading}\n", text, name)

    def test_the_daemons_page_has_what_is_written_by_hand(self):
        text, _ = self.pages["millraced.8"]
        for words in ("SIGHUP", "--check", "/etc/millrace/millrace.toml"):
            self.assertIn(words, text)

    def test_no_time_is_in_them_but_the_one_they_were_given(self):
        """So that the same commit gives the same bytes."""
        for file in self.files:
            data = file.read_bytes()
            self.assertEqual(data[4:8], b"\0\0\0\0", file.name)  # gzip's own
            self.assertIn(
                re.search(r'\.TH "[^"]*" "." "([^"]*)"', gzip.decompress(data).decode())[1],
                ("", "2026-01-02"),
            )

    def test_links_between_pages_lead_somewhere(self):
        html = {page.name: page.read_text() for page in self.folder.glob("*/html/*.html")}
        for name, text in html.items():
            for target in re.findall(r'href="([^":#]+)(?:#[^"]*)?"', text):
                self.assertIn(target, {*html, "millrace.css"}, f"in {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[__file__, *rest])
