"""The manual in packaging/doc says what is so: its commands are run as they stand there, chapter by
chapter and in order, and what they write is compared with what it says. Those of an administrator
are run by tests/packaging/test_doc.py.

What stands elsewhere in a test is put in its place:

    127.0.0.1:9092, 127.0.0.1:9644        where the test's broker listens
    millrace                              asks that broker
    paths of the package                  those of the build, and of the test's folder
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from harness.broker import PREFIX, Millrace
from harness.documentation import FOLDER, Block, chapters, verbs_of
from harness.paths import SOURCE
from harness.tool import run
from harness.zookeeper import ZooKeeper

pytestmark = pytest.mark.millrace

COMMAND_SECONDS_MAX = 120
CHAPTERS = chapters()
BROKERS = 4
README_WRITES = "…created topic orders with 3 partitions…hello…hello…orders…orders…hello…readers…"

TOOL = """#!/bin/sh
case $1 in
  stream | aggregate) verb=$1; shift; exec {program} "$verb" --admin {http} "$@" ;;
  *) exec {program} --bootstrap {kafka} "$@" ;;
esac
"""


class Desk:
    """Where a chapter's commands are typed."""

    def __init__(self, folder: Path, broker: Millrace):
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.replaced = {
            "127.0.0.1:9092": broker.address,
            "127.0.0.1:9644": broker.http_address(),
            "/etc/millrace": str(folder / "etc"),
            "/var/lib/millrace": str(broker.folder),
            "/usr/share/doc/millrace/examples": str(SOURCE / "configs"),
            "/usr/lib/millrace/plugins": str(PREFIX / "lib" / "millrace" / "plugins"),
        }
        self.programs = folder / "bin"
        self.programs.mkdir()
        tool = self.programs / "millrace"
        program = PREFIX / "bin" / "millrace"
        tool.write_text(TOOL.format(program=program, kafka=broker.address, http=broker.http_address()))
        tool.chmod(0o755)
        (self.programs / "millraced").symlink_to(PREFIX / "bin" / "millraced")

    def run(self, block: Block) -> None:
        text = block.text
        for said, meant in self.replaced.items():
            text = text.replace(said, meant)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.work,
            env=os.environ | {"PATH": f"{self.programs}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )
        assert done.returncode == 0, (
            f"{block}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
        block.check(done.stdout)


ENDLESS = "-G readers orders"
"""What the README ends by Ctrl-C."""


def test_the_commands_of_the_readme_for_a_broker_that_runs(tmp_path):
    (text,) = re.findall(
        r"^```sh\n([^`]*millrace topic create[^`]*)^```$", (SOURCE / "README.md").read_text(), re.MULTILINE
    )
    assert text.count(ENDLESS) == 1
    # A group's first member waits for more of them.
    broker = Millrace(tmp_path / "broker", {"group.initial.rebalance.delay.ms": 0})
    try:
        desk = Desk(tmp_path, broker.start())
        desk.run(Block("README", 1, "sh", text.replace(ENDLESS, f"-c 1 {ENDLESS}"), README_WRITES))
        broker.end()
    finally:
        broker.close()


def with_commands(kind: str) -> list[str]:
    return [name for name, blocks in CHAPTERS.items() if any(one.kind == kind for one in blocks)]


@pytest.mark.parametrize("chapter", with_commands("sh"))
def test_a_user_types_its_commands(chapter, tmp_path):
    # As it is installed, but that a new group does not wait for more members.
    broker = Millrace(tmp_path / "broker", {"group.initial.rebalance.delay.ms": 0})
    try:
        desk = Desk(tmp_path, broker.start())
        for block in CHAPTERS[chapter]:
            if block.kind == "sh":
                desk.run(block)
        broker.end()
    finally:
        broker.close()


@pytest.mark.parametrize("chapter", with_commands("sh cluster"))
def test_its_commands_for_a_cluster(chapter, tmp_path):
    zookeeper = ZooKeeper(tmp_path / "zookeeper").start()
    brokers = []
    try:
        for number in range(1, BROKERS + 1):
            settings = {
                "broker.id": number,
                "coordination.plugin": "zookeeper",
                "coordination.connect": f"{zookeeper.address}/manual",
            }
            brokers.append(Millrace(tmp_path / f"broker-{number}", settings=settings))
            brokers[-1].start()
        desk = Desk(tmp_path, brokers[0])
        for block in CHAPTERS[chapter]:
            if block.kind == "sh cluster":
                desk.run(block)
        for broker in brokers:
            broker.end()
    finally:
        for broker in brokers:
            broker.close()
        zookeeper.close()


@pytest.mark.parametrize("chapter", with_commands("toml"))
def test_its_configurations_are_good(chapter, tmp_path):
    for block in CHAPTERS[chapter]:
        if block.kind != "toml":
            continue
        file = tmp_path / f"{block.line}.toml"
        file.write_text(block.text)
        checked = subprocess.run(
            [PREFIX / "bin" / "millraced", "--config", file, "--check"],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )
        assert checked.returncode == 0, f"{block}: {checked.stderr}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_verbs_that_its_text_names_exist(chapter):
    for verb in verbs_of(FOLDER / f"{chapter}.md"):
        outcome = run(*verb.split()[1:], "--help")
        assert outcome.code == 0, f"{chapter}: {verb}: {outcome.errors}"


def test_links_lead_somewhere():
    for chapter in CHAPTERS:
        for target, heading in links_of(chapter):
            file = FOLDER / f"{target}.md"
            assert file.exists(), f"{chapter}.md: there is no {target}.md"
            assert heading is None or heading in headings_of(target), f"{chapter}.md: {target}.md#{heading}"


def links_of(chapter: str) -> list[tuple[str, str | None]]:
    text = (FOLDER / f"{chapter}.md").read_text()
    return [
        (target, heading or None)
        for target, heading in re.findall(r"\]\(([a-z_.-]+)\.md(?:#([a-z0-9-]+))?\)", text)
    ]


def headings_of(chapter: str) -> set[str]:
    lines = (FOLDER / f"{chapter}.md").read_text().splitlines()
    return {line.lstrip("# ").lower().replace(" ", "-") for line in lines if line.startswith("##")}
