#!/usr/bin/env python3
"""The tools of this folder must be able to fail: each is run on golden data and on copies with one
thing changed.

usage: tools_test.py BIN_DIR GOLDEN_DIR
"""

import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN, GOLDEN = Path(sys.argv[1]), Path(sys.argv[2])


def run(tool, *arguments):
    """(exit code, (passed, failed), output)"""
    done = subprocess.run(
        [BIN / tool, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    last = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.MULTILINE)
    counts = (int(last[1]), int(last[2])) if last else None
    return done.returncode, counts, done.stdout + done.stderr


def answer_to(api, events):
    """The index of the first answer of that API."""
    return next(
        at
        for at, event in enumerate(events)
        if event["dir"] == "resp" and event.get("api") == api
    )


class ToolsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def assert_fails(self, ran, counts, *texts):
        code, found, output = ran
        self.assertEqual((code, found), (1, counts), output)
        for text in texts:
            self.assertIn(text, output)

    # ---- wire-vectors ----

    def wire(self, change):
        """Runs on the first vector of a file, changed; without a line feed at its end."""
        with gzip.open(GOLDEN / "wire" / "003_Metadata.jsonl.gz", "rt") as file:
            vector = json.loads(next(file))
        change(vector)
        path = self.folder / "any name.gz"
        with gzip.open(path, "wt") as file:
            file.write(json.dumps(vector))
        return run("wire-vectors", path)

    def test_a_vector_passes(self):
        self.assertEqual(self.wire(lambda vector: None)[:2], (0, (1, 0)))

    def test_other_json(self):
        changed = self.wire(lambda vector: vector["json"].update(topics=[{"name": "x"}]))
        self.assert_fails(changed, (0, 1), "topics")

    def test_other_bytes(self):
        self.assert_fails(self.wire(lambda vector: vector.update(hex="00000001")), (0, 1))

    def test_bytes_behind_the_message(self):
        longer = self.wire(lambda vector: vector.update(hex=vector["hex"] + "00"))
        self.assert_fails(longer, (0, 1), "encodes differently from byte")

    def test_no_hex(self):
        self.assert_fails(self.wire(lambda vector: vector.update(hex="0g")), (0, 1), "hex")

    def test_unknown_message(self):
        unknown = self.wire(lambda vector: vector.update(api="Nonsense"))
        self.assert_fails(unknown, (0, 1), "no message NonsenseRequest")

    def test_unknown_version(self):
        self.assert_fails(self.wire(lambda vector: vector.update(version=99)), (0, 1), "99")

    def test_no_such_file(self):
        self.assert_fails(run("wire-vectors", self.folder / "none.gz"), (0, 1), "none.gz")

    # ---- segment-vectors ----

    def segment(self, name, change):
        topic = self.folder / "kafka-0" / "v2-none-java44"
        shutil.copytree(GOLDEN / "segments" / "kafka-4.4.0" / topic.name, topic)
        path = topic / name
        path.chmod(0o600)
        path.write_bytes(change(path.read_bytes()))
        return run("segment-vectors", self.folder)

    def test_a_folder_passes_at_any_depth(self):
        code, (passed, failed), output = self.segment(f"{0:020}.log", lambda log: log)
        self.assertEqual((code, failed), (0, 0), output)
        for root in (self.folder / "kafka-0", self.folder / "kafka-0" / "v2-none-java44"):
            self.assertEqual(run("segment-vectors", root)[1], (passed, 0))

    def test_other_record(self):
        other = self.segment(
            f"{0:020}.records.jsonl", lambda lines: lines.replace(b'"t":"rec"', b'"t":"recs"', 1)
        )
        self.assertEqual(other[0], 1, other[2])
        self.assertIn("recs", other[2])

    def test_damaged_log(self):
        damaged = self.segment(f"{0:020}.log", lambda log: log[:100] + b"\x7f" + log[101:])
        self.assertEqual(damaged[0], 1, damaged[2])
        self.assertIn("crc", damaged[2])

    def test_damaged_index(self):
        garbage = self.segment(f"{0:020}.index", lambda index: b"\xff" * 8 + index)
        self.assertEqual(garbage[0], 1, garbage[2])
        self.assertIn("was not taken for good", garbage[2])

    def test_no_folder(self):
        self.assert_fails(run("segment-vectors", self.folder), (0, 1), "no partition's folder")

    # ---- replay-session ----

    def session(self, name, change):
        lines = (GOLDEN / "sessions" / name).read_text().splitlines()
        events = [json.loads(line) for line in lines]
        change(events)
        path = self.folder / "session.jsonl"
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
        return run("replay-session", path)

    def test_a_session_passes(self):
        self.assertEqual(self.session("kafka44-kcat-produce.jsonl", lambda events: None)[1], (1, 0))

    def test_another_error_code(self):
        def change(events):
            answer = events[answer_to("Produce", events)]
            good = "0000000000000000000000000000ffffffffffffffff"  # index, code, offset, no time
            self.assertIn(good, answer["hex"])
            answer["hex"] = answer["hex"].replace(good, good[:8] + "0007" + good[12:])

        changed = self.session("kafka44-kcat-produce.jsonl", change)
        self.assert_fails(changed, (0, 1), "errorCode: expected 7, found 0")

    def test_an_answer_where_the_recorded_broker_hangs_up(self):
        def change(events):
            self.assertEqual(events[1]["version"], 99)  # of ApiVersions
            del events[2:]
            events.append({"seq": 3, "ms": 9, "conn": 1, "dir": "server-closed"})

        ran = self.session("kafka44-bad-requests.jsonl", change)
        self.assert_fails(ran, (0, 1), "expected closed by the broker")

    def test_no_session(self):
        self.assert_fails(run("replay-session", self.folder / "none"), (0, 1), "cannot be opened")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
