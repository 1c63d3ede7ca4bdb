"""Disks that are slow, full, damaged or have torn or lost what was written last, under the checked load. R07 and L11
are numbers of the list of scenarios."""

import os
import subprocess
from pathlib import Path

import pytest
from harness.lossy_disk import LossyDisk

from parts.checked import Checked
from parts.cluster import HEAL_SECONDS_MAX
from parts.cluster import SESSION_MS as SHORT_SESSION_MS
from parts.history import History
from parts.load import Load, read_log
from parts.moves import STILL, move_leader
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
LOSS = "replicated records are lost"
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


@pytest.fixture
def lossy(tmp_path):
    """A disk that loses what was not synced."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    with LossyDisk(tmp_path / "lossy") as disk:
        yield disk


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


def files_beside_logs(data: Path, topic: str) -> list[Path]:
    """All that a broker which has stopped leaves, for one of the partitions."""
    found = [*data.glob("*"), *data.glob(f"{topic}-0/*")]
    return sorted(path for path in found if path.is_file() and path.suffix not in (".log", ".lock"))


def folders_in(data: Path) -> set[str]:
    return {path.name for path in data.iterdir() if path.is_dir()}


def flip_bits(path: Path) -> bytes:
    """In the midst of a file; what was there."""
    sound = path.read_bytes()
    at = len(sound) // 2
    path.write_bytes(sound[:at] + bytes(one ^ 0xFF for one in sound[at : at + 4]) + sound[at + 4 :])
    return sound


@pytest.mark.slow
def test_R07_damage_beside_the_logs_of_one_removes_nothing(make_cluster, topic):
    """File after file: it is repaired, or named and refused until it is as it was. The others go on meanwhile."""
    cluster = make_cluster()
    with Checked(cluster, topic) as checked:
        victim = cluster.brokers[cluster.follower(topic)]
        data = victim.folder / "data"
        cluster.stop(victim.id)
        before = folders_in(data)
        outcomes = {}
        for path in files_beside_logs(data, topic):
            if not path.exists() or path.stat().st_size == 0:
                continue
            said_before = len(victim.log_text())
            sound = flip_bits(path)

            def is_named(path=path, said_before=said_before) -> bool:
                said = victim.log_text()[said_before:].splitlines()
                return any(path.name in line and " INFO " not in line for line in said)

            try:
                victim.start()
                up = True
            except AssertionError:
                up = False
                assert is_named(), f"{path.name}: {victim.log_tail()}"
            if up:
                until(
                    lambda: cluster.is_healed(topic) or is_named(),
                    HEAL_SECONDS_MAX,
                    f"{path.name} is repaired, or named",
                )
            mended = up and cluster.is_healed(topic)
            assert folders_in(data) >= before, path.name
            checked.goes_on(20)
            if up:
                cluster.stop(victim.id)
            if not mended and path.exists():
                path.write_bytes(sound)
            outcomes[path.name] = "refused" if not up else "repaired" if mended else "named"
        print(outcomes)
        assert {"meta.properties", "partition.metadata"} <= set(outcomes), outcomes
        victim.start()
        cluster.wait_until_healed(topic)
        checked.verdict()
        assert folders_in(data) >= before
    cluster.end()


def five(make_cluster, lossy, topic: str, **defaults: object):
    """The first of them leads, on the disk that loses what was not synced; three must have what is acknowledged."""
    defaults = {**STILL, "min.insync.replicas": 3, **defaults}
    cluster = make_cluster(5, own={1: {"broker.data": lossy.folder / "data"}}, defaults=defaults)
    cluster.create(topic, 1, 5)
    while cluster.leader(topic) != 1:
        move_leader(cluster, topic)
    return cluster


def power_cut_and_pauses(cluster, topic: str, lossy, goes_on):
    """Two sleep, the power of the leader goes, those two are back, and the two that have everything sleep; who was cut is
    back before they are. What the disk has lost."""
    early, late = (2, 3), (4, 5)
    for id in early:
        cluster.brokers[id].pause()
    cluster.wait_for_in_sync(topic, 0, 3)
    goes_on(200)
    cluster.kill(1)
    lost = lossy.cut(1)
    for id in early:
        cluster.brokers[id].go_on()
    for id in late:
        cluster.brokers[id].pause()
    pass_time(2 * SHORT_SESSION_MS / 1000)
    cluster.brokers[1].start()
    pass_time(2 * SHORT_SESSION_MS / 1000)
    for id in late:
        cluster.brokers[id].go_on()
    return lost


@pytest.mark.slow
def test_L11_a_power_cut_and_pauses_lose_nothing_that_was_flushed(lossy, make_cluster, topic):
    cluster = five(make_cluster, lossy, topic, **{"log.flush.interval.messages": 1})
    with Checked(cluster, topic, partitions=1, is_made=True) as checked:
        power_cut_and_pauses(cluster, topic, lossy, checked.goes_on)
        checked.goes_on()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


@pytest.mark.slow
def test_L11_what_a_power_cut_and_pauses_cost_of_what_was_replicated_alone_is_told(
    lossy, make_cluster, topic
):
    """Nobody else of those in sync is there to lead but the one that has lost it: that is no silent loss."""
    cluster = five(make_cluster, lossy, topic)
    history = History()
    with Load(cluster.addresses, topic, history) as load:
        load.wait_for_acknowledged(200)
        lost = power_cut_and_pauses(cluster, topic, lossy, load.wait_for_acknowledged)
        load.stop()
    cluster.wait_until_healed(topic)
    assert lost.writes_lost > 0
    at = dict(read_log(cluster.addresses, topic, 1)[0])
    missing = [one for one in history.acknowledged if at.get(one.offset) != one.number]
    told = [id for id, one in cluster.brokers.items() if LOSS in one.log_text()]
    print(f"{len(missing)} of {len(history.acknowledged)} are lost, as {told} tell")
    assert bool(missing) == bool(told), (len(missing), told)


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
