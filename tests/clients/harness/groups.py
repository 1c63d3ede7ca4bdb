"""Requests of groups as bytes, for what no client library would send, and for many members at once.

Each function makes a question: a request and how its answer is read. The versions are the last
before flexible ones, but for the protocol of KIP-848, which has no other."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.wire import RawConnection

NONE = 0
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
STARTING = {COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR}
OFFSET_METADATA_TOO_LARGE = 12
ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, INVALID_GROUP_ID = 22, 23, 24
UNKNOWN_MEMBER_ID, INVALID_SESSION_TIMEOUT, REBALANCE_IN_PROGRESS = 25, 26, 27
INVALID_REQUEST, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND = 42, 68, 69
MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED, FENCED_INSTANCE_ID = 79, 81, 82
FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, STALE_MEMBER_EPOCH = 110, 111, 113

KEYS = {
    "offset_commit": 8,
    "offset_fetch": 9,
    "find_coordinator": 10,
    "join": 11,
    "heartbeat": 12,
    "leave": 13,
    "sync": 14,
    "describe": 15,
    "list": 16,
    "delete": 42,
    "offset_delete": 47,
    "consumer_heartbeat": 68,
}


class Reader:
    def __init__(self, data: bytes, flexible: bool = False):
        self.data, self.at, self.flexible = data, 0, flexible

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return value

    def i16(self) -> int:
        return self.number("h")

    def i32(self) -> int:
        return self.number("i")

    def i64(self) -> int:
        return self.number("q")

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _take(self, size: int) -> bytes | None:
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str | None:
        taken = self._take(self._varint() - 1 if self.flexible else self.i16())
        return None if taken is None else taken.decode()

    def bytes(self) -> bytes:
        return self._take(self._varint() - 1 if self.flexible else self.i32()) or b""

    def uuid(self) -> bytes:
        return self._take(16)

    def array(self, one: Callable[[], Any]) -> list[Any]:
        count = self._varint() - 1 if self.flexible else self.i32()
        return [one() for _ in range(count)]

    def tags(self) -> None:
        for _ in range(self._varint()):
            self._varint()
            self._take(self._varint())


def i16(value: int) -> bytes:
    return struct.pack(">h", value)


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def text(value: str | None) -> bytes:
    return i16(-1) if value is None else i16(len(value.encode())) + value.encode()


def data(value: bytes) -> bytes:
    return i32(len(value)) + value


def array(parts) -> bytes:
    parts = list(parts)
    return i32(len(parts)) + b"".join(parts)


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def compact_text(value: str | None) -> bytes:
    return varint(0) if value is None else varint(len(value.encode()) + 1) + value.encode()


def compact_array(parts) -> bytes:
    if parts is None:
        return varint(0)
    parts = list(parts)
    return varint(len(parts) + 1) + b"".join(parts)


@dataclass(frozen=True)
class Question:
    key: int
    version: int
    body: bytes
    read: Callable[[Reader], Any]
    flexible: bool = False

    def frame(self, correlation: int, client: str = "test") -> bytes:
        head = struct.pack(">hhi", self.key, self.version, correlation) + text(client)
        head += b"\0" if self.flexible else b""
        return struct.pack(">i", len(head) + len(self.body)) + head + self.body

    def answer(self, frame: bytes) -> Any:
        """Of a frame without its size."""
        reader = Reader(frame[4:], self.flexible)
        if self.flexible:
            reader.tags()
        return self.read(reader)


def ask(connection: RawConnection, question: Question) -> Any:
    connection.send(question.frame(7))
    return question.answer(connection.receive_frame())


# --- The classic protocol ---


@dataclass
class Joined:
    error: int
    generation: int
    protocol: str
    leader: str
    member: str
    members: list[tuple[str, str | None, bytes]]

    @property
    def leads(self) -> bool:
        return self.error == NONE and self.leader == self.member


def subscription(*topics: str) -> bytes:
    return i16(0) + array(map(text, topics)) + i32(-1)


def assignment(topic: str, partitions) -> bytes:
    return i16(0) + array([text(topic) + array(map(i32, partitions))]) + i32(-1)


def read_assignment(bytes_: bytes) -> list[int]:
    """The partitions of the one topic."""
    if not bytes_:
        return []
    reader = Reader(bytes_)
    reader.i16()
    topics = reader.array(lambda: (reader.text(), reader.array(reader.i32)))
    return [number for _, partitions in topics for number in partitions]


def join(
    group: str,
    member: str = "",
    *,
    topic: str = "topic",
    session_ms: int = 10_000,
    rebalance_ms: int = 10_000,
    instance: str | None = None,
    protocol_type: str = "consumer",
    protocols: list[tuple[str, bytes]] | None = None,
    version: int = 5,
) -> Question:
    """Versions 2 and 3 let a new member in at once, without an id that it must know first."""
    wanted = [("range", subscription(topic))] if protocols is None else protocols
    body = text(group) + i32(session_ms) + i32(rebalance_ms) + text(member)
    body += text(instance) if version >= 5 else b""
    body += text(protocol_type) + array(text(name) + data(about) for name, about in wanted)

    def read(reader: Reader) -> Joined:
        reader.i32()
        fixed = (reader.i16(), reader.i32(), reader.text(), reader.text(), reader.text())
        named = lambda: reader.text() if version >= 5 else None  # noqa: E731
        return Joined(*fixed, reader.array(lambda: (reader.text(), named(), reader.bytes())))

    return Question(KEYS["join"], version, body, read)


def sync(
    group: str, generation: int, member: str, assignments=(), instance: str | None = None
) -> Question:
    """Answered with (error, assignment)."""
    body = text(group) + i32(generation) + text(member) + text(instance)
    body += array(text(to) + data(about) for to, about in assignments)
    return Question(KEYS["sync"], 3, body, lambda r: (r.i32(), r.i16(), r.bytes())[1:])


def heartbeat(group: str, generation: int, member: str, instance: str | None = None) -> Question:
    """Answered with the error."""
    body = text(group) + i32(generation) + text(member) + text(instance)
    return Question(KEYS["heartbeat"], 3, body, lambda r: (r.i32(), r.i16())[1])


def leave(group: str, *members: tuple[str, str | None]) -> Question:
    """Answered with the errors of the members, each (id, instance)."""
    body = text(group) + array(text(member) + text(instance) for member, instance in members)

    def read(reader: Reader) -> list[int]:
        reader.i32()
        error = reader.i16()
        rows = reader.array(lambda: (reader.text(), reader.text(), reader.i16())[2])
        return [error] * len(members) if error else rows

    return Question(KEYS["leave"], 3, body, read)


# --- The protocol of KIP-848 ---


@dataclass
class Beat:
    error: int
    message: str | None
    member: str | None
    epoch: int
    interval_ms: int
    assignment: dict[bytes, list[int]] | None
    """By topic id; None: as before."""


def consumer_heartbeat(
    group: str,
    member: str,
    epoch: int,
    *,
    topics: list[str] | None = None,
    owned: dict[bytes, list[int]] | None = None,
    instance: str | None = None,
    rebalance_ms: int = -1,
    assignor: str | None = None,
    regex: str | None = None,
    version: int = 1,
) -> Question:
    body = compact_text(group) + compact_text(member) + i32(epoch)
    body += compact_text(instance) + compact_text(None) + i32(rebalance_ms)
    body += compact_array(None if topics is None else map(compact_text, topics))
    body += compact_text(regex) if version >= 1 else b""
    body += compact_text(assignor)
    has = None if owned is None else [
        topic + compact_array(map(i32, numbers)) + b"\0" for topic, numbers in owned.items()
    ]  # fmt: skip
    body += compact_array(has) + b"\0"

    def topic_partitions(reader: Reader) -> tuple[bytes, list[int]]:
        found = (reader.uuid(), reader.array(reader.i32))
        reader.tags()
        return found

    def read(reader: Reader) -> Beat:
        reader.i32()
        beat = Beat(
            reader.i16(), reader.text(), reader.text(), reader.i32(), reader.i32(), None
        )  # fmt: skip
        if reader.number("b") >= 0:  # a struct that may be null
            beat.assignment = dict(reader.array(lambda: topic_partitions(reader)))
        return beat

    return Question(KEYS["consumer_heartbeat"], version, body, read, flexible=True)


# --- Offsets and groups as a whole ---


def commit(
    group: str,
    topic: str,
    offsets: dict[int, int],
    *,
    generation: int = -1,
    member: str = "",
    instance: str | None = None,
    metadata: str | None = "",
) -> Question:
    """Answered with the error of each partition."""
    rows = (
        i32(partition) + i64(offset) + i32(-1) + text(metadata)
        for partition, offset in offsets.items()
    )
    body = text(group) + i32(generation) + text(member) + text(instance)
    body += array([text(topic) + array(rows)])
    return Question(KEYS["offset_commit"], 7, body, lambda r: (r.i32(), _committed(r))[1])


def new_commit(
    group: str, topic: str, offsets: dict[int, int], epoch: int, member: str
) -> Question:
    """Version 9: the first for members of the protocol of KIP-848."""
    rows = (
        i32(partition) + i64(offset) + i32(-1) + compact_text("") + b"\0"
        for partition, offset in offsets.items()
    )
    body = compact_text(group) + i32(epoch) + compact_text(member) + compact_text(None)
    body += compact_array([compact_text(topic) + compact_array(rows) + b"\0"]) + b"\0"

    def read(reader: Reader) -> dict[int, int]:
        def row() -> tuple[int, int]:
            found = reader.i32(), reader.i16()
            reader.tags()
            return found

        def of_topic() -> list[tuple[int, int]]:
            reader.text()
            found = reader.array(row)
            reader.tags()
            return found

        reader.i32()
        return dict(reader.array(of_topic)[0])

    return Question(KEYS["offset_commit"], 9, body, read, flexible=True)


def old_commit(
    group: str, topic: str, offsets: dict[int, int], retention_ms: int, version: int
) -> Question:
    """Version 2 to 4, in which a commit says how long it is to be kept."""
    rows = (i32(partition) + i64(offset) + text("") for partition, offset in offsets.items())
    body = text(group) + i32(-1) + text("") + i64(retention_ms)
    body += array([text(topic) + array(rows)])

    def read(reader: Reader) -> dict[int, int]:
        if version >= 3:
            reader.i32()
        return _committed(reader)

    return Question(KEYS["offset_commit"], version, body, read)


def _committed(reader: Reader) -> dict[int, int]:
    topics = reader.array(
        lambda: (reader.text(), reader.array(lambda: (reader.i32(), reader.i16())))
    )
    return dict(topics[0][1])


def offsets(group: str, topic: str, partitions) -> Question:
    """Answered with the group's error and, by partition, (offset, error)."""
    body = text(group) + array([text(topic) + array(map(i32, partitions))])

    def read(reader: Reader) -> tuple[int, dict[int, tuple[int, int]]]:
        reader.i32()

        def row() -> tuple[int, tuple[int, int]]:
            number, offset, _epoch, _metadata = (
                reader.i32(), reader.i64(), reader.i32(), reader.text()
            )  # fmt: skip
            return number, (offset, reader.i16())

        topics = reader.array(lambda: (reader.text(), dict(reader.array(row))))
        return reader.i16(), topics[0][1] if topics else {}

    return Question(KEYS["offset_fetch"], 5, body, read)


def find(group: str) -> Question:
    """Answered with the error."""
    return Question(
        KEYS["find_coordinator"], 1, text(group) + b"\0", lambda r: (r.i32(), r.i16())[1]
    )


def delete_offsets(group: str, topic: str, partitions) -> Question:
    """Answered with the group's error."""
    body = text(group) + array([text(topic) + array(map(i32, partitions))])
    return Question(KEYS["offset_delete"], 0, body, lambda r: r.i16())


def offsets_when_loaded(
    connection: RawConnection, group: str, topic: str, partitions
) -> dict[int, tuple[int, int]]:
    """Once the group's coordinator serves: it may be about to be made, or to be loaded."""
    while True:
        found = NOT_COORDINATOR, {}
        if ask(connection, find(group)) == NONE:
            found = ask(connection, offsets(group, topic, partitions))
        if not {found[0], *(error for _, error in found[1].values())} & STARTING:
            return found[1]


def describe(group: str) -> Question:
    """Answered with (error, state, protocol type, number of members)."""

    def read(reader: Reader) -> tuple[int, str, str, int]:
        def member() -> None:
            for _ in range(3):
                reader.text()
            reader.bytes()
            reader.bytes()

        def row() -> tuple[int, str, str, int]:
            error, _, state, kind, _ = (
                reader.i16(), reader.text(), reader.text(), reader.text(), reader.text()
            )  # fmt: skip
            return error, state, kind, len(reader.array(member))

        return reader.array(row)[0]

    return Question(KEYS["describe"], 0, array([text(group)]), read)


def list_all() -> Question:
    """Answered with {group: protocol type}."""
    return Question(
        KEYS["list"], 0, b"", lambda r: (r.i16(), dict(r.array(lambda: (r.text(), r.text()))))[1]
    )


def delete(group: str) -> Question:
    """Answered with the error."""
    return Question(
        KEYS["delete"],
        0,
        array([text(group)]),
        lambda r: (r.i32(), r.array(lambda: (r.text(), r.i16())))[1][0][1],
    )
