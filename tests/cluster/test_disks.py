"""Disks that are slow, full or have torn what was written last, under the checked load."""

import os
import subprocess
from pathlib import Path

import pytest

from parts.checked import Checked
from parts.cluster import HEAL_SECONDS_MAX
from parts.waiting import pass_time, until

DISK_BYTES = 64 << 20
BLOCK = bytes(1 << 20)
TORN_BYTES = 40
SLOW_MICROSECONDS = 30_000
CHANGES = "pwrite64,pwritev,pwritev2,fsync,fdatasync,ftruncate"
FAULT_SECONDS = 5
SESSION_MS = 10_000
"""Longer than a busy machine keeps a broker from anything: it is the disk that is slow."""
LAG_MS = 3000
LAG_SECONDS_DEFAULT = 30


@pytest.fixture
def disks(tmp_path):
    """A small disk for each of three brokers: `own` of a cluster, and where each is mounted."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folders = {id: tmp_path / f"disk-{id}" for id in (1, 2, 3)}
    mounted: list[Path] = []
    try:
        for folder in folders.values():
            folder.mkdir()
            size = f"size={DISK_BYTES}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=True)
            mounted.append(folder)
        yield folders
    finally:
        for folder in mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)


def on_disks(disks) -> dict[int, dict]:
    return {id: {"broker.data": folder / "data"} for id, folder in disks.items()}


@pytest.fixture
def cluster(make_cluster, disks):
    return make_cluster(
        own=on_disks(disks),
        defaults={"replica.lag.time.max.ms": LAG_MS, "log.segment.bytes": 4 << 20},
    )


def fill(disk: Path) -> Path:
    """To the last byte, by somebody else's file."""
    path = disk / "of-somebody-else"
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(BLOCK):
                pass
        except OSError:
            pass
    return path


def wait_until_out(cluster, topic: str, id: int) -> None:
    """Two others are in sync, as any broker tells."""

    def out() -> bool:
        state = cluster.states(topic).get(0)
        return state is not None and len(state.in_sync) == 2 and id not in state.in_sync

    until(out, HEAL_SECONDS_MAX, f"broker {id} is out of sync")


def test_the_disk_of_a_leader_is_full(cluster, topic, disks):
    """After a while somebody who has room leads what it led, and when it has room again it is in sync as before."""
    with Checked(cluster, topic, partitions=1) as checked:
        full = cluster.leader(topic)
        filled = fill(disks[full])
        until(lambda: cluster.leader(topic) != full, HEAL_SECONDS_MAX, "another leader")
        checked.goes_on()
        wait_until_out(cluster, topic, full)
        assert "storage takes no more of a partition" in cluster.brokers[full].log_text()
        filled.unlink()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


def test_the_disk_of_a_follower_is_full(make_cluster, topic, disks):
    """The others go on without it, long before it lags, and it comes back by itself."""
    cluster = make_cluster(own=on_disks(disks), defaults={"log.segment.bytes": 4 << 20})
    with Checked(cluster, topic, partitions=1) as checked:
        full = cluster.follower(topic)
        filled = fill(disks[full])
        wait_until_out(cluster, topic, full)
        checked.goes_on()
        filled.unlink()
        cluster.wait_until_healed(topic)
        assert checked.load.longest_gap() < LAG_SECONDS_DEFAULT / 2
        checked.verdict()
    cluster.end()


@pytest.mark.slow
def test_the_disk_of_one_who_leads_and_follows_is_full(make_cluster, topic, disks):
    """The producer has batches on their way to it and, at the others, such as wait for it: none of them
    may be stored a second time."""
    cluster = make_cluster(own=on_disks(disks))
    with Checked(cluster, topic) as checked:
        checked.goes_on()
        full = cluster.leader(topic)
        filled = fill(disks[full])
        checked.goes_on(2000)
        filled.unlink()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


def tear(data: Path, topic: str) -> int:
    """What a power cut may leave of a log's last bytes: of one their size only, another ends in the
    midst of a batch. How many logs it did that to."""
    torn = 0
    for folder in sorted(data.glob(f"{topic}-*")):
        segment = max(folder.glob("*.log"))
        size = segment.stat().st_size
        if size < 2 * TORN_BYTES:
            continue
        os.truncate(segment, size - TORN_BYTES)
        if torn % 2 == 0:
            os.truncate(segment, size)
        torn += 1
    return torn


def bytes_of(cluster, topic: str, partition: int) -> set[bytes]:
    """Of a partition's whole log, on each broker."""
    folders = [one.folder / "data" / f"{topic}-{partition}" for one in cluster.brokers.values()]
    return {b"".join(path.read_bytes() for path in sorted(one.glob("*.log"))) for one in folders}


@pytest.mark.slow
def test_the_logs_of_a_leader_are_torn(make_cluster, topic):
    """It cuts off what is torn and gets it from the others; then it is as good as they are."""
    cluster = make_cluster()
    with Checked(cluster, topic) as checked:
        victim = cluster.kill_leader(topic)
        assert tear(cluster.brokers[victim].folder / "data", topic) >= 2
        checked.goes_on()
        cluster.brokers[victim].start()
        cluster.brokers[victim].wait_for_log_line("bytes removed")
        cluster.wait_until_healed(topic)
        cluster.kill_leader(topic)
        checked.goes_on()
        for broker in cluster.brokers.values():
            if not broker.running:
                broker.start()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()
    for partition in range(checked.partitions):
        assert len(bytes_of(cluster, topic, partition)) == 1, "all replicas have the same bytes"


@pytest.fixture
def slowed(tmp_path):
    """Every change of the disk by a broker takes 30 ms more, from the call on."""
    tracers: list[subprocess.Popen] = []

    def slow(broker) -> None:
        words = ["strace", "-f", "-qq", "-o", tmp_path / "strace.log", "-p", broker.process.pid]
        words += ["-e", f"trace={CHANGES}", "-e", f"inject={CHANGES}:delay_enter={SLOW_MICROSECONDS}"]
        tracers.append(subprocess.Popen(list(map(str, words))))
        log = tmp_path / "strace.log"
        until(lambda: log.exists() and log.stat().st_size > 0, 30, "strace has begun")

    yield slow
    for tracer in tracers:
        tracer.terminate()
        tracer.wait()


@pytest.mark.parametrize("who", ["leader", pytest.param("follower", marks=pytest.mark.slow)])
def test_a_disk_is_slow(make_cluster, topic, slowed, who):
    """All becomes slower, and nothing else: the broker keeps its session meanwhile."""
    cluster = make_cluster(session_ms=SESSION_MS)
    with Checked(cluster, topic) as checked:
        id = cluster.leader(topic) if who == "leader" else cluster.follower(topic)
        slowed(cluster.brokers[id])
        checked.goes_on(100)
        pass_time(FAULT_SECONDS)
        checked.goes_on(100)
        assert "the session is over" not in cluster.brokers[id].log_text()
        checked.verdict()
