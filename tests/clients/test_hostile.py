"""Peers that mean harm or do not know better: none of them may stop the broker for the others."""

import os
import random
import socket
import struct
import time

import pytest

from conftest import PARTITIONS
from harness.broker import Millrace
from harness.client import DEADLINE_SECONDS
from harness.confluent import Confluent, create_topic
from harness.wire import RawConnection, api_versions_request

pytestmark = pytest.mark.fault

STOP_GRACE_SECONDS = 3
"""How long a stop waits for answers that it has to wait for."""
API_PRODUCE, API_LIST_OFFSETS, API_METADATA = 0, 2, 3
STRANGE_NUMBERS = (0, 1, -1, -2, 0x7F, 0x80, 0x7FFF, 0x7FFFFFFF, -0x80000000, 1 << 24)


def request(api: int, version: int, body: bytes) -> bytes:
    return struct.pack(">hhih4s", api, version, 1, 4, b"test") + body


def sound_requests(topic: str) -> list[bytes]:
    name = struct.pack(">h", len(topic)) + topic.encode()
    records = struct.pack(">i", 70) + bytes(70)
    return [
        api_versions_request(1)[4:],
        request(API_METADATA, 1, struct.pack(">i", 1) + name),
        request(
            API_LIST_OFFSETS,
            1,
            struct.pack(">ii", -1, 1) + name + struct.pack(">iiq", 1, 0, -1),
        ),
        request(
            API_PRODUCE,
            3,
            struct.pack(">hhii", -1, 1, 1000, 1) + name + struct.pack(">ii", 1, 0) + records,
        ),
    ]


def mutated(rng: random.Random, sound: bytes) -> bytes:
    """`sound` with one to three places changed, cut or grown; its API key and version stay."""
    data = bytearray(sound)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(8, len(data))
        kind = rng.randrange(5)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + 4] = struct.pack(">i", rng.choice(STRANGE_NUMBERS))
        elif kind == 2:
            del data[at + 1 :]
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.choice((1, 4, 300)))
        else:
            data[at:at] = b"\xff" * rng.choice((5, 10)) + b"\x01"
    return bytes(data)


def test_mutated_requests_end_their_own_connection_at_most(own_broker, topic):
    Confluent(own_broker.address).create_topic(topic, PARTITIONS)
    rng = random.Random(7)
    sound = sound_requests(topic)
    for _ in range(300):
        with RawConnection(own_broker.address) as bad:
            try:
                for _ in range(5):
                    data = mutated(rng, rng.choice(sound))
                    bad.send(struct.pack(">i", len(data)) + data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the broker has ended it before we were done
    own_broker.assert_running()
    with RawConnection(own_broker.address) as good:
        good.ask_api_versions()


def test_unread_answers_come_in_order_once_they_are_read(broker):
    with RawConnection(broker.address) as greedy:
        greedy.send(b"".join(api_versions_request(n) for n in range(5000)))
        for n in range(5000):
            assert struct.unpack_from(">i", greedy.receive_frame()) == (n,)


def open_files(broker) -> int:
    return len(os.listdir(f"/proc/{broker.process.pid}/fd"))


def test_two_thousand_short_connections_leave_nothing_open(own_broker):
    before = open_files(own_broker)
    for n in range(2000):
        with RawConnection(own_broker.address) as short:
            if n % 5 == 0:
                short.send(api_versions_request(n))
    with RawConnection(own_broker.address) as last:
        for n in range(1000):
            last.ask_api_versions(n)
            if open_files(own_broker) <= before + 1:
                return
    raise AssertionError(f"{open_files(own_broker)} files are open, {before} were before")


@pytest.mark.millrace
def test_announced_requests_keep_nobody_from_asking(tmp_path):
    """Each announces more than a shard's share of memory and never sends it."""
    broker = Millrace(tmp_path / "broker", settings={"broker.memory": 8 << 20})
    half = struct.pack(">ihhi", 7 << 20, API_PRODUCE, 8, 1) + bytes(100)
    waiting = []
    try:
        broker.start()
        for _ in range(8):
            waiting.append(RawConnection(broker.address))
            waiting[-1].send(half)
        for _ in range(4):  # connections go to the shards in turn
            with RawConnection(broker.address) as other:
                other.ask_api_versions()
        code, seconds = broker.stop()
        assert (code, seconds <= broker.stop_seconds_max) == (0, True)
    finally:
        for connection in waiting:
            connection.socket.close()
        broker.close()


def test_polls_of_vanished_clients_end_with_them(own_broker, topic):
    Confluent(own_broker.address).create_topic(topic, PARTITIONS)
    with RawConnection(own_broker.address) as connection:
        for partition in range(PARTITIONS):  # its log is open once it answers
            connection.fetch_batches(topic, partition)
    before = open_files(own_broker)
    vanishing = [RawConnection(own_broker.address) for _ in range(50)]
    for connection in vanishing:
        connection.ask_api_versions()
        connection.send_fetch(topic, 0, 0, wait_ms=60_000)
    for connection in vanishing:
        connection.socket.close()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while open_files(own_broker) > before + 1:
        assert time.monotonic() < deadline, f"{open_files(own_broker)} files, {before} before"
        own_broker.assert_running()


@pytest.mark.millrace
def test_a_stop_does_not_wait_for_polls(own_broker, topic):
    Confluent(own_broker.address).create_topic(topic, PARTITIONS)
    with RawConnection(own_broker.address) as parked:
        parked.ask_api_versions()
        parked.send_fetch(topic, 0, 0, wait_ms=60_000)
        parked.send(api_versions_request(1))  # its answer waits for the poll's
        code, seconds = own_broker.stop()
        assert (code, seconds < STOP_GRACE_SECONDS) == (0, True), seconds


def resident_bytes(broker) -> int:
    with open(f"/proc/{broker.process.pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmRSS"].split()[0]) << 10


@pytest.mark.millrace
def test_answers_that_nobody_reads_are_bounded_together(tmp_path):
    """Each answer lists 2,000 partitions; 20 peers ask for 400 of them and read none. What the
    system keeps of it for them, a few MiB each, is not the broker's."""
    bound = 8 << 20
    broker = Millrace(
        tmp_path / "broker",
        settings={
            "storage.plugin": "memory",
            'transport.kafka."answers.pending.max.bytes"': bound,
        },
    )
    ask = struct.pack(">i", 18) + request(API_METADATA, 1, struct.pack(">i", -1))
    greedy = []
    try:
        broker.start()
        create_topic(broker.address, "wide", 2000)
        before = resident_bytes(broker)
        for _ in range(20):
            greedy.append(RawConnection(broker.address))
            greedy[-1].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy[-1].send(ask * 400)
        for n in range(20):  # others are served
            with RawConnection(broker.address) as other:
                other.ask_api_versions(n)
        broker.wait_for_log_line("does not read its answers")
        assert resident_bytes(broker) - before < 4 * bound  # 400 MB were asked for
        for n in range(20):
            with RawConnection(broker.address) as other:
                other.ask_api_versions(n)
        assert broker.stop()[0] == 0
    finally:
        for connection in greedy:
            connection.socket.close()
        broker.close()
