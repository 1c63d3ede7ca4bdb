"""Peers that mean harm or do not know better: none of them may stop the broker for the others."""

import os
import random
import struct

import pytest

from conftest import PARTITIONS
from harness.broker import Millrace
from harness.confluent import Confluent
from harness.wire import RawConnection, api_versions_request

pytestmark = pytest.mark.fault

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
