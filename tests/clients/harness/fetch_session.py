"""Fetch v12 and v13 and their sessions (KIP-227), byte by byte: topics by name and by id."""

import struct
from dataclasses import dataclass, field

from harness.wire import API_FETCH, FETCH_BYTES_MAX, RawConnection

API_METADATA = 3
BY_NAME, BY_ID = 12, 13
NO_ID = bytes(16)
NO_TAGS = b"\0"

Partitions = dict[str | bytes, list[int]]
"""Partitions by topic: a name, or with BY_ID an id."""


def uvarint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def compact(data: bytes) -> bytes:
    return uvarint(len(data) + 1) + data


def array(elements: list[bytes]) -> bytes:
    return uvarint(len(elements) + 1) + b"".join(elements)


class Reader:
    """Takes the fields of a flexible answer one after the other."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, layout: str):
        values = struct.unpack_from(">" + layout, self.data, self.at)
        self.at += struct.calcsize(">" + layout)
        return values[0] if len(values) == 1 else values

    def uvarint(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self.take("B")
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def bytes(self) -> bytes:
        return self.take(f"{max(self.uvarint() - 1, 0)}s")

    def count(self) -> int:
        return max(self.uvarint() - 1, 0)

    def tags(self) -> None:
        for _ in range(self.uvarint()):
            self.uvarint()
            self.take(f"{self.uvarint()}s")


def ask(connection: RawConnection, key: int, version: int, body: bytes) -> Reader:
    """A request of a flexible version; its answer behind the header."""
    connection.send_request(key, version, NO_TAGS + body)
    answer = Reader(connection.receive_frame())
    answer.take("i")
    answer.tags()
    return answer


def topic_id(connection: RawConnection, topic: str) -> bytes:
    """By Metadata v10."""
    asked = array([NO_ID + compact(topic.encode()) + NO_TAGS])
    answer = ask(connection, API_METADATA, 10, asked + bytes(3) + NO_TAGS)
    answer.take("i")
    for _ in range(answer.count()):  # brokers
        answer.take("i")
        answer.bytes()
        answer.take("i")
        answer.bytes()
        answer.tags()
    answer.bytes()  # the cluster's id
    answer.take("i")
    assert answer.count() == 1
    error, name = answer.take("h"), answer.bytes()
    assert (error, name) == (0, topic.encode())
    return answer.take("16s")


@dataclass
class Fetched:
    error: int
    session: int
    errors: dict[tuple[str | bytes, int], int] = field(default_factory=dict)
    """By topic and partition: all that the answer holds."""
    records: dict[tuple[str | bytes, int], bytes] = field(default_factory=dict)


def fetch(
    connection: RawConnection,
    version: int,
    asked: Partitions,
    session: int = 0,
    epoch: int = 0,
    forgotten: Partitions | None = None,
) -> Fetched:
    """From offset 0, without waiting. Session 0 with epoch 0 asks for a session."""

    def topic_field(topic) -> bytes:
        return topic if version >= BY_ID else compact(topic.encode())

    def partition_field(partition: int) -> bytes:
        return struct.pack(">iiqiqi", partition, -1, 0, -1, -1, FETCH_BYTES_MAX) + NO_TAGS

    body = struct.pack(">iiiibii", -1, 0, 0, FETCH_BYTES_MAX, 0, session, epoch)
    body += array(
        [topic_field(t) + array([*map(partition_field, ps)]) + NO_TAGS for t, ps in asked.items()]
    )
    body += array(
        [
            topic_field(t) + array([struct.pack(">i", p) for p in ps]) + NO_TAGS
            for t, ps in (forgotten or {}).items()
        ]
    )
    return _fetched(ask(connection, API_FETCH, version, body + compact(b"") + NO_TAGS), version)


def _fetched(answer: Reader, version: int) -> Fetched:
    answer.take("i")
    fetched = Fetched(*answer.take("hi"))
    for _ in range(answer.count()):
        topic = answer.take("16s") if version >= BY_ID else answer.bytes().decode()
        for _ in range(answer.count()):
            partition, error = answer.take("ihqqq")[:2]
            for _ in range(answer.count()):  # aborted transactions
                answer.take("qq")
                answer.tags()
            answer.take("i")
            assert (topic, partition) not in fetched.errors, "a partition is answered twice"
            fetched.errors[topic, partition] = error
            fetched.records[topic, partition] = answer.bytes()
            answer.tags()
        answer.tags()
    return fetched
