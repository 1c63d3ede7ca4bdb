"""An aggregate of an application over the admin API, and another version that takes its place while
it is asked all the time. The bank of sdk/examples, built out of tree, is in
tests/packaging/installed_sdk_test.py."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from conftest import running
from harness.broker import PREFIX, Millrace
from harness.client import DEADLINE_SECONDS
from harness.http import Http
from harness.json_doc import documented
from harness.tool import Tool, run

pytestmark = pytest.mark.millrace

TALLIES = PREFIX / "tests" / "plugins" / "aggregates" / "operators"
"""tally.so, which says that it is version one; tally_two.so; tally_FAULT.so."""
KEYS = ["a", "b", "c", "d"]


@pytest.fixture
def broker(tmp_path):
    one = Millrace(
        tmp_path / "broker",
        {},
        {
            "plugins.path": f'["{TALLIES.parent}"]',
            "operators.plugins": '["consumer_groups", "tally"]',
            "operators.snapshot_events": 300,
        },
    )
    with running(one):
        yield one


class Tally:
    def __init__(self, broker: Millrace):
        self.http = Http(broker.http_address())

    def add(self, key: str, number: int = 1) -> tuple[str, int]:
        """(version, sum); what is said to be tried again is."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            answer = self.http.ask("POST", f"/admin/aggregates/tally/{key}", {"command": f"add {number}"})
            if answer.status != 503 or time.monotonic() > deadline:
                break
        return parsed(answer)

    def sum(self, key: str) -> tuple[str, int]:
        return parsed(self.http.ask("GET", f"/admin/aggregates/tally/{key}"))

    def fact(self) -> dict:
        facts = self.http.get("/admin/aggregates")["aggregates"]
        return next(fact for fact in facts if fact["name"] == "tally")

    def replace(self, file: Path, name: str = "tally"):
        return self.http.ask("PATCH", f"/admin/aggregates/{name}", {"file": str(file)})


def parsed(answer) -> tuple[str, int]:
    assert answer.status == 200, answer
    version, _, total = answer.json()["answer"].partition(":")
    return version, int(total)


class Adder(threading.Thread):
    """Adds 1 to a key again and again. A sum that is skipped or comes twice is an event that was
    lost, or happened twice."""

    def __init__(self, broker: Millrace, key: str):
        super().__init__()
        self.tally = Tally(broker)
        self.key = key
        self.ending = threading.Event()
        self.answers: list[tuple[str, int]] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.ending.is_set():
                self.answers.append(self.tally.add(self.key))
        except BaseException as failure:  # told by check()
            self.failure = failure

    def check(self) -> int:
        self.ending.set()
        self.join()
        assert self.failure is None, self.failure
        assert [total for _, total in self.answers] == list(range(1, len(self.answers) + 1))
        return len(self.answers)

    def wait_for(self, version: str, count: int) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while sum(said == version for said, _ in self.answers[-count:]) < count:
            assert self.failure is None, self.failure
            assert time.monotonic() < deadline, self.answers[-10:]
            self.ending.wait(0.01)


def test_a_version_takes_over_while_it_is_asked(broker, tmp_path):
    """Every addition counts once, whichever version made it; also by a file that lies under the
    same name as the one before. Then the broker is killed, and begins with the first version."""
    adders = [Adder(broker, key) for key in KEYS]
    for adder in adders:
        adder.start()
    try:
        for adder in adders:
            adder.wait_for("one", 50)
        file = tmp_path / "tally.so"
        for source, version in (("tally_two", "two"), ("tally", "one"), ("tally_two", "two")):
            file.unlink(missing_ok=True)
            shutil.copy(TALLIES / f"{source}.so", file)
            answer = Tally(broker).replace(file)
            assert answer.status == 200, answer
            assert answer.json()["version"] == version and answer.json()["path"] == str(file)
            for adder in adders:
                adder.wait_for(version, 50)
    finally:
        counts = [adder.check() for adder in adders]
    tally = Tally(broker)
    assert [tally.sum(key) for key in KEYS] == [("two", count) for count in counts]
    shown = tally.fact()
    assert (shown["partitions"], shown["serving"]) == (3, 3)
    assert shown["starts_from"] == str(TALLIES / "tally.so")
    broker.wait_for_log_line("INFO", "an aggregate was replaced")
    broker.kill()
    broker.start()
    tally = Tally(broker)
    assert [tally.add(key, 0) for key in KEYS] == [("one", count) for count in counts]
    assert tally.fact()["path"] == str(TALLIES / "tally.so")


def test_what_cannot_take_over_is_refused_and_the_old_one_goes_on(broker, tmp_path):
    tally = Tally(broker)
    assert tally.add("a") == ("one", 1)
    junk = tmp_path / "junk.so"
    junk.write_bytes(b"s3cret")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    bad = PREFIX / "tests" / "plugins" / "bad" / "compression"
    for file, words in (
        (junk, "not an ELF file"),
        (fifo, "a device, pipe or socket"),
        (tmp_path / "none.so", "there is no such file"),
        ("none.so", "expected the whole path"),
        (PREFIX / "lib/millrace/plugins/compression/lz4.so", "a compression plugin, expected an operators"),
        (PREFIX / "lib/millrace/plugins/operators/filter.so", "expected another version of org.example.operators.tally"),
        (bad / "other_major.so", "built for plugin ABI"),
        (bad / "newer_minor.so", "this kernel loads"),
        (TALLIES / "tally_other_id.so", "is org.example.operators.other, expected another version"),
        (TALLIES / "tally_other_name.so", "it has no aggregate tally; it has talley"),
        (TALLIES / "tally_other_topic.so", "keeps its events in __talley, that which runs __tally"),
        (TALLIES / "tally_service.so", "offers the service org.example.tally/1"),
        (TALLIES / "tally_cannot_read.so", "event at offset 0: written by a version that nobody knows"),
    ):  # fmt: skip
        answer = tally.replace(file)
        assert answer.status == 400, (file, answer)
        message = answer.json()["message"]
        assert words in message and "s3cr" not in message and "/.operators/" not in message, message
        assert str(file) in message
        assert tally.add("a", 0) == ("one", 1)
    assert tally.replace(TALLIES / "tally_two.so", "talli").status == 404
    groups = PREFIX / "lib/millrace/plugins/operators/consumer_groups.so"
    refused = tally.replace(groups, "consumer_groups")
    assert refused.status == 400 and "restart the broker" in refused.text
    assert tally.http.ask("PATCH", "/admin/aggregates/tally", {"path": "x"}).status == 400
    assert tally.fact()["version"] == "one"


def test_the_tool_lists_and_replaces(broker, tmp_path):
    Tally(broker).add("a")
    tool = Tool(broker.address)
    admin = ("--admin", broker.http_address())
    (listed,) = documented(tool, "aggregate list", *admin)
    assert [one["name"] for one in listed["aggregates"]] == ["consumer_groups", "tally"]
    assert "__tally" in tool.text("aggregate", *admin, "list")
    said = tool.text("aggregate", *admin, "replace", "tally", TALLIES / "tally_two.so")
    assert "runs version two" in said and "until this broker restarts" in said
    assert f"in place of {TALLIES}/tally.so" in said
    documented(tool, "aggregate replace", "tally", TALLIES / "tally_two.so", *admin)
    assert Tally(broker).add("a") == ("two", 2)
    unknown = run("aggregate", *admin, "replace", "talli", TALLIES / "tally_two.so")
    assert unknown.code == 1 and "nearest known: tally" in unknown.errors
    unfit = run("aggregate", *admin, "replace", "tally", tmp_path / "none.so")
    assert unfit.code == 64 and "there is no such file" in unfit.errors
    assert "PLUGIN_FILE" in run("aggregate", "replace", "--help").output
