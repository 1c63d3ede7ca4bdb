"""Compaction while things go wrong: the newest of each key is there whatever happens, what cannot be
compacted is told and keeps no other log from it, and nothing half-done stays behind."""

import contextlib
import os
import random
import subprocess
import threading
import time
from pathlib import Path

import confluent_kafka as ck
import pytest

from harness.broker import Millrace
from harness.client import DEADLINE_SECONDS
from harness.compaction import (
    COMPACTED,
    FILLER,
    SLOWLY,
    SOON,
    Writer,
    compact_at_full_speed,
    half_done,
    wait_for_a_pass,
)
from harness.confluent import Confluent
from harness.http import Http

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

DISK_BYTES = 24 << 20
FIRST = f"{0:020}"
CLEANED = [".log.cleaned", ".index.cleaned", ".timeindex.cleaned"]
STEPS = [".log.cleaned", ".log", ".log.swap", *CLEANED[1:], ".index", ".timeindex"]
STEPS += [".index.swap", ".timeindex.swap"]
RENAMES = "rename,renameat,renameat2"
SOON_SECONDS = 12
"""Less than the first pause after a disk has failed."""


@pytest.fixture
def broker(tmp_path):
    broker = Millrace(tmp_path / "broker", SOON)
    try:
        yield broker
        broker.end()
    finally:
        broker.close()


def metric(broker, name: str) -> int:
    text = Http(broker.http_address()).ask("GET", "/metrics").text
    (value,) = [line.split()[1] for line in text.splitlines() if line.startswith(name + " ")]
    return int(value)


def test_kills_during_passes_lose_nothing_and_leave_nothing(request, broker):
    """Slow passes, so that a kill finds one at work, at any moment of it."""
    broker.defaults = SOON | SLOWLY
    broker.start()
    writer = Writer(broker.address, "states", seed=3)
    writer.client.create_topic("states", 1, COMPACTED)
    folder = broker.folder / "data" / "states-0"
    chance = random.Random(4)
    for _ in range(request.config.getoption("--kills")):
        wait_for_a_pass(folder, writer)
        for _ in range(chance.randrange(4)):
            writer.client.bounds("states", 0)
        broker.kill()
        broker.start()
        writer.assert_newest_are_there()
    compact_at_full_speed(broker, writer)
    assert broker.stop()[0] == 0
    assert half_done(folder) == []
    broker.start()


def wait_until_traced(broker) -> None:
    """Every thread of it."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    tasks = Path(f"/proc/{broker.process.pid}/task")
    while any("TracerPid:\t0\n" in (task / "status").read_text() for task in tasks.iterdir()):
        assert time.monotonic() < deadline, "strace does not begin"


def killed_when_it_renames(broker, path: Path, then) -> None:
    """By the kernel, before the file has another name; `then` makes it go there."""
    words = ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(broker.process.pid), "-P", str(path)]
    words += ["-e", f"trace={RENAMES}", "-e", f"inject={RENAMES}:signal=SIGKILL"]
    tracer = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        wait_until_traced(broker)
        threading.Thread(target=then, daemon=True).start()
        broker.process.wait(DEADLINE_SECONDS)
    finally:
        tracer.terminate()
        tracer.wait()
    broker.kill()


def test_a_kill_at_a_step_of_the_exchange_loses_nothing(request, broker):
    """Before one of its renames, in turn: new files get the name by which a start goes on with them, old
    ones lose theirs, the new ones take their place. More `--kills` are more of these steps."""
    if os.geteuid() != 0:
        pytest.skip("only root may trace another process")
    late = COMPACTED | {"min.compaction.lag.ms": "3600000"}
    for seed, step in enumerate(STEPS[: request.config.getoption("--kills")]):
        topic = f"states-{seed}"
        broker.start()
        writer = Writer(broker.address, topic, seed)
        writer.client.create_topic(topic, 1, late)
        writer.send(400)
        writer.send_what_stays_dirty()
        first = broker.folder / "data" / f"{topic}-0" / FIRST

        def compact(client=writer.client, topic=topic) -> None:
            client.adjust(topic, "set", "min.compaction.lag.ms", "0")

        def try_to_compact(compact=compact) -> None:
            with contextlib.suppress(Exception):  # nobody answers who is dead
                compact()

        killed_when_it_renames(broker, first.with_name(FIRST + step), try_to_compact)
        assert first.with_name(FIRST + step).exists()
        swap = first.with_name(FIRST + ".log.swap").exists()
        assert swap == (step not in CLEANED), step
        broker.start()
        writer.assert_newest_are_there()
        compact()
        writer.wait_until_compacted()
        writer.assert_newest_are_there()
        assert broker.stop()[0] == 0
        assert half_done(broker.folder / "data" / f"{topic}-0") == []
    broker.start()


def test_a_corrupt_batch_is_told_and_keeps_no_other_log_from_being_compacted(broker):
    broker.start()
    writer = Writer(broker.address, "sound", seed=5)
    spoilt = Writer(broker.address, "spoilt", seed=6)
    # Dirty, and spoilt, before it may be compacted.
    late = COMPACTED | {"min.compaction.lag.ms": "3600000"}
    spoilt.client.create_topic("spoilt", 1, late)
    writer.client.create_topic("sound", 1, COMPACTED)
    for _ in range(4):
        spoilt.send(200)
    logs = sorted((broker.folder / "data" / "spoilt-0").glob("*.log"))
    assert len(logs) > 2
    with logs[1].open("r+b") as file:
        file.seek(100)
        byte = file.read(1)[0]
        file.seek(100)
        file.write(bytes([byte ^ 1]))
    before = [log.read_bytes() for log in logs[:-1]]
    spoilt.client.adjust("spoilt", "set", "min.compaction.lag.ms", "0")
    line = broker.wait_for_log_line("a log cannot be compacted", "spoilt-0")
    assert f"offset {int(logs[1].stem)}" in line, line
    writer.send(800)
    writer.send_what_stays_dirty()
    writer.wait_until_compacted()
    writer.assert_newest_are_there()
    assert [log.read_bytes() for log in logs[:-1]] == before, "it stays as it is"
    assert half_done(broker.folder / "data" / "spoilt-0") == []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while metric(broker, "millrace_log_cleaner_uncleanable_partitions") != 1:
        assert time.monotonic() < deadline


def test_a_full_disk_ends_a_pass_and_nothing_else(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", disk]
    subprocess.run(mount, check=True)
    broker = Millrace(tmp_path / "broker", SOON, {"broker.data": disk})
    try:
        broker.start()
        writer = Writer(broker.address, "states", seed=8, keys=2000)
        late = COMPACTED | {"segment.bytes": "1000000", "min.compaction.lag.ms": "3600000"}
        writer.client.create_topic("states", 1, late)
        while len(list((disk / "states-0").glob("*.log"))) < 4:
            writer.send(2000, at_once=1000)
        ballast = disk / "ballast"
        with ballast.open("wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(bytes(1 << 14))
        writer.client.adjust("states", "set", "min.compaction.lag.ms", "0")
        broker.wait_for_log_line("a log cannot be compacted", "states-0")
        writer.assert_newest_are_there()
        assert not list((disk / "states-0").glob("*.swap"))
        ballast.unlink()
        freed = time.monotonic()
        broker.wait_for_log_line("compacted a log", "states-0")
        assert time.monotonic() - freed < SOON_SECONDS, "it is tried as soon as there is room"
        writer.assert_newest_are_there()
        broker.kill()
        broker.start()
        writer.send(2000, at_once=1000)
        writer.assert_newest_are_there()
        assert broker.stop()[0] == 0
    finally:
        broker.close()
        subprocess.run(["umount", disk], check=True)


def test_a_topic_that_is_compacted_and_not_in_turn_keeps_the_newest(broker):
    broker.start()
    writer = Writer(broker.address, "turns", seed=9)
    writer.client.create_topic("turns", 1, COMPACTED)
    for at in range(12):
        writer.send(150)
        policy = ("delete", "compact", "compact,delete")[at % 3]
        writer.client.adjust("turns", "set", "cleanup.policy", policy)
    writer.client.adjust("turns", "set", "cleanup.policy", "compact")
    writer.send_what_stays_dirty()
    writer.wait_until_compacted()
    writer.assert_newest_are_there()
    assert "cannot be compacted" not in broker.log_text()


def test_a_reader_in_the_middle_goes_on_and_ends_with_the_newest(broker):
    broker.start()
    writer = Writer(broker.address, "read", seed=10)
    late = COMPACTED | {"min.compaction.lag.ms": "3600000"}
    writer.client.create_topic("read", 1, late)
    for _ in range(6):
        writer.send(200)
    # Little at a time, so that what it reads next was compacted since.
    small = {"fetch.message.max.bytes": 4000, "queued.min.messages": 1, "check.crcs": True}
    reader = ck.Consumer({"bootstrap.servers": broker.address, "group.id": "reader"} | small)
    reader.assign([ck.TopicPartition("read", 0, 0)])
    seen, offsets = {}, []

    def take(until) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not until():
            message = reader.poll(0.2)
            assert time.monotonic() < deadline, f"read up to {offsets[-1]}"
            if message is None:
                continue
            assert message.error() is None, message.error()
            offsets.append(message.offset())
            seen[message.key()] = message.value()

    take(lambda: len(offsets) >= 300)
    writer.client.adjust("read", "set", "min.compaction.lag.ms", "0")
    writer.send_what_stays_dirty()
    writer.wait_until_compacted()
    end = writer.client.bounds("read", 0)[1]
    take(lambda: offsets[-1] == end - 1)
    reader.close()
    assert offsets == sorted(set(offsets))
    assert len(offsets) < 1200, "it has read what is compacted"
    del seen[FILLER]
    assert seen == writer.newest


def test_retention_while_logs_are_compacted(broker):
    """The start moves under passes; what is behind it is there."""
    broker.start()
    writer = Writer(broker.address, "both", seed=11, keys=2000)
    both = COMPACTED | {"cleanup.policy": "compact,delete", "retention.bytes": "100000"}
    writer.client.create_topic("both", 1, both)
    ended = threading.Event()
    starts = []

    def look() -> None:
        client = Confluent(broker.address)
        while not ended.is_set():
            starts.append(client.bounds("both", 0)[0])

    looking = threading.Thread(target=look)
    looking.start()
    deadline = time.monotonic() + DEADLINE_SECONDS
    try:
        while len(set(starts)) < 3 or broker.log_text().count("compacted a log") < 3:
            assert time.monotonic() < deadline, f"starts: {set(starts)}"
            writer.send(300)
    finally:
        ended.set()
        looking.join()
    assert starts == sorted(starts)
    read = writer.client.read("both", 0)
    start, end = writer.client.bounds("both", 0)
    assert end == writer.sent
    found = {record.key: record.value for record in read}
    kept = {key for key, offset in writer.offsets.items() if offset >= start}
    assert kept and {key: found.get(key) for key in kept} == {
        key: writer.newest[key] for key in kept
    }
    assert "cannot be compacted" not in broker.log_text()
