"""`millrace doctor` on a machine where all is well, and where one thing is not."""

import json
import os
import socket
import subprocess

import pytest

from harness.broker import Millrace
from harness.tool import run
from harness.zookeeper import ZooKeeper

pytestmark = pytest.mark.millrace


def as_it_runs(broker: Millrace) -> list[str]:
    """What the broker was started with, as the doctor takes it."""
    return broker.command()[1:]


class Report:
    def __init__(self, *words: object):
        outcome = run("-o", "json", "doctor", *words)
        self.code, self.errors = outcome.code, outcome.errors
        answer = json.loads(outcome.output)
        self.findings = answer["findings"]
        assert answer["problems"] == len(self.problems())
        for one in self.findings:
            assert set(one) == {"check", "severity", "finding", "evidence", "remedy"}
            assert one["evidence"] and bool(one["remedy"]) == (one["severity"] != "ok"), one

    def problems(self) -> list[str]:
        return [one["check"] for one in self.findings if one["severity"] == "problem"]

    def of(self, check: str) -> dict[str, str]:
        """The one finding of a check."""
        (found,) = [one for one in self.findings if one["check"] == check]
        return found

    def state(self, check: str) -> str:
        return self.of(check)["severity"]


def test_a_broker_that_is_well_has_no_problem(broker):
    report = Report(*as_it_runs(broker), "--admin", broker.http_address())
    assert (report.problems(), report.code) == ([], 0), report.findings
    assert str(broker.process.pid) in report.of("broker.process")["finding"]
    for check in (
        *("config", "data.folder", "port.kafka", "broker.answers", "broker.health", "version"),
        *("cluster.brokers", "cluster.controller", "cluster.partitions", "plugins"),
    ):
        assert report.state(check) == "ok", report.of(check)
    assert "open now: " in report.of("limits.files")["evidence"]


def test_the_table_says_the_same(broker):
    shown = run("doctor", *as_it_runs(broker), "--admin", broker.http_address())
    assert shown.code == 0, shown.errors
    assert shown.output.startswith("CHECK ")
    assert f"the broker listens on {broker.address}" in shown.output
    assert "no problems" in shown.output


def test_a_broker_that_answers_nothing_is_a_problem(broker):
    report = Report(*as_it_runs(broker), "--admin", "127.0.0.1:1", "-b", "127.0.0.1:1")
    assert report.code == 1 and "2 problems" in report.errors
    assert sorted(report.problems()) == ["broker.answers", "broker.health"]
    assert "127.0.0.1:1" in report.of("broker.answers")["finding"]


def test_what_is_wrong_before_a_start(tmp_path):
    """The port is another's, the folder is closed to the service, and no broker runs."""
    data = tmp_path / "closed"
    data.mkdir(mode=0o700)
    one = Millrace(tmp_path / "broker", settings={"broker.data": data})
    with socket.socket() as other:
        other.bind(("127.0.0.1", one.port))
        other.listen()
        report = Report(*as_it_runs(one), "--user", "nobody")
    assert report.code == 1
    assert {"port.kafka", "data.folder"} <= set(report.problems()), report.findings
    assert f"process {os.getpid()}" in report.of("port.kafka")["finding"]
    assert "user nobody may not" in report.of("data.folder")["finding"]
    assert report.state("broker.process") == "warning"
    assert report.state("broker.answers") == "warning"


def test_a_configuration_that_is_wrong_is_told_with_its_place(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text("[broker]\nidd = 1\n")
    report = Report("--config", config)
    assert (report.code, report.problems()) == (1, ["config"])
    assert report.of("config")["evidence"].startswith(f"{config}:2:1: ")
    assert "nearest known: id" in report.of("config")["evidence"]


def in_a_mount_of_its_own(script: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *words],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "script, check, said",
    [
        (
            "mount -t tmpfs -o size=2m tmpfs $1 && head -c 2090000 /dev/zero > $1/x",
            "disk.space",
            "the disk is full",
        ),
        ("mount -t tmpfs -o size=64m,ro tmpfs $1", "disk.mount", "read-only"),
        ("mount -t tmpfs -o size=64m,nr_inodes=20 tmpfs $1", "disk.inodes", "no more files"),
    ],
)
def test_a_disk_that_is_full_or_closed(tmp_path, script, check, said):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    data = tmp_path / "data"
    data.mkdir()
    one = Millrace(tmp_path / "broker", settings={"broker.data": data})
    tool = [str(one.prefix / "bin" / "millrace"), "-o", "json", "doctor"]
    done = in_a_mount_of_its_own(
        f'{script} && shift && exec "$@"', str(data), *tool, *as_it_runs(one)
    )
    findings = {each["check"]: each for each in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1, done.stderr
    assert findings[check]["severity"] == "problem" and said in findings[check]["finding"]
    assert "tmpfs" in findings["disk.filesystem"]["evidence"]
    assert findings["disk.filesystem"]["severity"] == "warning"


def test_zookeeper_is_there_or_away(tmp_path):
    server = ZooKeeper(tmp_path / "zookeeper")
    connect = {"coordination.plugin": "zookeeper", "coordination.connect": f"{server.address}/chroot"}
    one = Millrace(tmp_path / "broker", settings=connect)
    try:
        server.start()
        words = as_it_runs(one)
        before = Report(*words)
        assert before.state("zookeeper.server") == "ok", before.findings
        assert "standalone" in before.of("zookeeper.server")["evidence"]
        assert "made at the first start" in before.of("zookeeper.chroot")["finding"]
        one.start()
        running = Report(*words, "--admin", one.http_address())
        assert running.problems() == [], running.findings
        assert running.of("zookeeper.chroot")["finding"] == "/chroot is there"
        assert running.state("zookeeper.session") == "ok"
        server.kill()
        away = Report(*words, "--admin", one.http_address())
        assert "zookeeper.server" in away.problems(), away.findings
        assert server.address in away.of("zookeeper.server")["finding"]
        one.kill()
    finally:
        one.close()
        server.close()


