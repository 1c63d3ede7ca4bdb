"""A crowd of connections that read nothing, or slowly, or send slowly, or send and ask for very
much: small requests beside it are answered, everybody gets on, and memory has its bound."""

import struct
import time
from pathlib import Path

import pytest

from harness.batches import record_batch
from harness.broker import Millrace
from harness.client import DEADLINE_SECONDS
from harness.confluent import create_topic
from harness.crowd import HUGE_PART_BYTES, POLITE_SECONDS, CrowdProcess, small_latencies
from harness.wire import API_PRODUCE, RawConnection, produce_body, request_frame

pytestmark = pytest.mark.millrace

MIB = 1 << 20
PRODUCE_VERSION = 7
SMALL, HUGE = "small", "huge"
HUGE_PARTITIONS = 64
MEMORY = 256 * MIB
ANSWERS = 64 * MIB
"""Of `answers.pending.max.bytes`."""
BESIDE = 160 * MIB
"""What a broker takes beside both: the program, connections, blocks that are received into, what
the allocator keeps."""
BUSY = {"unread": 400, "drip": 400, "trickle": 20, "huge": 2, "reader": 4, "pipeline": 4}
P99_MS_MAX, SLOWEST_MS_MAX = 500, 3000
"""What a small request waits while 800 connections ask for all they can at once, and the crowd
takes half of the machine."""


class Resident:
    """What a broker has in memory, and had at most since this was made."""

    def __init__(self, broker):
        self.process = Path(f"/proc/{broker.process.pid}")
        (self.process / "clear_refs").write_text("5")

    def _bytes(self, name: str) -> int:
        lines = (self.process / "status").read_text().splitlines()
        return int(dict(line.split(":", 1) for line in lines)[name].split()[0]) << 10

    def now(self) -> int:
        return self._bytes("VmRSS")

    def peak(self) -> int:
        return self._bytes("VmHWM")


def cpu_seconds(broker) -> float:
    fields = Path(f"/proc/{broker.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def p99(latencies: list[float]) -> float:
    return latencies[len(latencies) * 99 // 100]


@pytest.fixture
def broker(tmp_path):
    own = Millrace(tmp_path / "broker", settings={"broker.memory": MEMORY})
    try:
        own.start()
        create_topic(own.address, SMALL, 8)
        create_topic(own.address, HUGE, HUGE_PARTITIONS)
        with RawConnection(own.address) as connection:
            part = record_batch([bytes(HUGE_PART_BYTES)])
            for partition in range(HUGE_PARTITIONS):
                assert connection.produce(HUGE, partition, part, PRODUCE_VERSION) == 0
        yield own
        own.end()
    finally:
        own.close()


@pytest.mark.crowd
@pytest.mark.alone
def test_five_thousand_connections_of_every_kind(broker):
    """Small requests alone, then beside 5,000 connections of which a sixth mean harm."""
    resident = Resident(broker)
    alone = small_latencies(broker.address, SMALL, 5, per_second=100)
    polite = 5000 - sum(BUSY.values())
    with CrowdProcess(
        broker.address, SMALL, HUGE, HUGE_PARTITIONS, polite=polite, **BUSY
    ) as there:
        beside = small_latencies(broker.address, SMALL, 15, per_second=100)
    told = (
        f"small requests: p50 {alone[len(alone) // 2]:.2f} ms, p99 {p99(alone):.2f} ms, at most "
        f"{alone[-1]:.0f} ms; beside: p50 {beside[len(beside) // 2]:.2f} ms, p99 "
        f"{p99(beside):.2f} ms, at most {beside[-1]:.0f} ms\n"
        f"resident: at most {resident.peak() >> 20} MiB\n"
        + "\n".join(f"{kind}: {found}" for kind, found in there.figures.items())
    )
    print(told)
    assert p99(beside) <= P99_MS_MAX, told
    assert beside[-1] <= SLOWEST_MS_MAX, told
    assert 1000 * there.figures["polite"]["slowest"] <= SLOWEST_MS_MAX, told
    assert resident.peak() <= MEMORY + ANSWERS + BESIDE, told
    for kind in ("polite", "pipeline", "reader", "huge"):
        assert there.figures[kind]["closed"] == 0, told
        assert there.figures[kind]["fewest"] >= 1, told
    assert there.figures["polite"]["gap"] <= 2 * POLITE_SECONDS, told
    assert there.figures["trickle"]["closed"] > 0, told


@pytest.mark.crowd
@pytest.mark.alone
def test_idle_connections_keep_little_memory(broker):
    """Each has sent 16 KiB before."""
    count, bytes_max = 2000, 20 << 10
    part = record_batch([bytes(16 << 10)])
    body = produce_body(SMALL, {0: part}, acks=1)
    request = request_frame(API_PRODUCE, PRODUCE_VERSION, body)
    before = Resident(broker).now()
    connections = [RawConnection(broker.address) for _ in range(count)]
    try:
        for connection in connections:
            connection.send(request)
        for connection in connections:
            connection.receive_frame()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (grown := Resident(broker).now() - before) > count * bytes_max:
            assert time.monotonic() < deadline, f"{grown // count} bytes for each of {count}"
            broker.assert_running()
        print(f"{grown // count} bytes for each of {count}")
    finally:
        for connection in connections:
            connection.socket.close()


@pytest.mark.fault
def test_small_requests_find_memory_beside_large_ones_that_do_not_come(tmp_path):
    """Twelve announce a third of all memory each and send next to nothing of it."""
    broker = Millrace(tmp_path / "broker", settings={"broker.memory": 12 * MIB})
    half = struct.pack(">ihhi", 4 * MIB, API_PRODUCE, 8, 1) + bytes(100)
    small = record_batch([bytes(10_000)])
    waiting = []
    try:
        broker.start()
        create_topic(broker.address, SMALL, 1)
        for _ in range(12):
            waiting.append(RawConnection(broker.address))
            waiting[-1].send(half)
        for _ in range(4):  # on both shards
            with RawConnection(broker.address) as other:
                other.ask_api_versions()
                assert other.produce(SMALL, 0, small, PRODUCE_VERSION) == 0
        broker.end()
    finally:
        for connection in waiting:
            connection.socket.close()
        broker.close()


class FewFiles(Millrace):
    """May open so many files."""

    files_max = 150

    def command(self) -> list[str]:
        return ["prlimit", f"--nofile={self.files_max}:{self.files_max}", *super().command()]


def is_served(broker) -> bool:
    """Whether a new connection is."""
    with RawConnection(broker.address) as connection:
        try:
            return len(connection.ask_api_versions()) > 0
        except (ConnectionError, EOFError):
            return False


@pytest.mark.fault
def test_connections_beyond_the_limit_of_open_files_are_refused(tmp_path):
    """With a line in the log, without a busy processor; others are served, and new ones once there is room."""
    broker = FewFiles(tmp_path / "broker")
    connections = []
    try:
        broker.start()
        create_topic(broker.address, SMALL, 1)
        first = RawConnection(broker.address)
        connections = [first, *(RawConnection(broker.address) for _ in range(FewFiles.files_max))]
        broker.wait_for_log_line("connections are refused", "limit of open files")
        used, began = cpu_seconds(broker), time.monotonic()
        while time.monotonic() < began + 1.5:
            first.ask_api_versions()
            assert RawConnection(broker.address).closed_by_broker()
            assert broker._ended_meanwhile() is None  # a pause of 20 ms
        share = (cpu_seconds(broker) - used) / (time.monotonic() - began)
        assert share < 0.3, f"{100 * share:.0f} % of a processor"
        assert broker.log_text().count("connections are refused") == 1
        for connection in connections[1:50]:
            connection.socket.close()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not is_served(broker):
            assert time.monotonic() < deadline
        assert first.produce(SMALL, 0, record_batch([b"x"]), PRODUCE_VERSION) == 0
        broker.end()
    finally:
        for connection in connections:
            connection.socket.close()
        broker.close()
