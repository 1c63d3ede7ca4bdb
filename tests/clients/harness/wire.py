"""Raw connections: just enough of the protocol to see what a client library hides."""

import socket
import struct
from collections.abc import Collection

API_PRODUCE, API_FETCH, API_API_VERSIONS = 0, 1, 18
FETCH_BYTES_MAX = 50 << 20
DEADLINE_SECONDS = 60


def api_versions_request(correlation: int) -> bytes:
    """A whole ApiVersions v0 request, length included."""
    body = struct.pack(">hhih4s", API_API_VERSIONS, 0, correlation, 4, b"test")
    return struct.pack(">i", len(body)) + body


def request_frame(key: int, version: int, body: bytes) -> bytes:
    """A whole request with the header of before flexible versions."""
    header = struct.pack(">hhih4s", key, version, 7, 4, b"test")
    return struct.pack(">i", len(header + body)) + header + body


class RawConnection:
    """A socket to the broker with a deadline on everything."""

    def __init__(self, address: str, timeout: float = DEADLINE_SECONDS):
        host, port = address.rsplit(":", 1)
        host = host.strip("[]")  # of IPv6
        self.socket = socket.create_connection((host, int(port)), timeout=timeout)
        self.port = self.socket.getsockname()[1]
        """Our end, by which the broker's log lines can be told apart."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def finish_sending(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def receive(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError(f"closed by the broker after {len(data)} of {count} bytes")
            data += part
        return bytes(data)

    def receive_frame(self) -> bytes:
        return self.receive(struct.unpack(">i", self.receive(4))[0])

    def ask_api_versions(self, correlation: int = 1) -> dict[int, tuple[int, int]]:
        """{api key: (oldest, newest version)}"""
        self.send(api_versions_request(correlation))
        frame = self.receive_frame()
        answered, error, count = struct.unpack_from(">ihi", frame)
        assert (answered, error) == (correlation, 0), (answered, error)
        rows = struct.iter_unpack(">hhh", frame[10 : 10 + 6 * count])
        return {key: (oldest, newest) for key, oldest, newest in rows}

    def ask(self, key: int, version: int, body: bytes) -> bytes:
        """The answer to a request with the header of before flexible versions, without its own."""
        self.send_request(key, version, body)
        return self.receive_frame()[4:]

    def send_request(self, key: int, version: int, body: bytes) -> None:
        self.send(request_frame(key, version, body))

    def send_fetch(self, topic: str, partition: int, offset: int, wait_ms: int) -> None:
        """Fetch v4 for at least one byte."""
        self.send_request(API_FETCH, 4, fetch_body(4, topic, [partition], offset, wait_ms))

    def fetch(
        self, topic: str, partition: int, offset: int = 0, version: int = 4
    ) -> tuple[int, bytes]:
        """Error and records of one partition, by Fetch v4 to v10."""
        answer = self.ask(API_FETCH, version, fetch_body(version, topic, [partition], offset, 1000))
        # throttle; error and session since v7; one topic, its name, one partition
        at = 4 + (6 if version >= 7 else 0) + 4 + 2 + len(topic.encode()) + 4
        index, error, _high, _stable = struct.unpack_from(">ihqq", answer, at)
        assert index == partition
        at += 22 + (8 if version >= 5 else 0)
        (aborted,) = struct.unpack_from(">i", answer, at)
        at += 4 + max(aborted, 0) * 16
        (size,) = struct.unpack_from(">i", answer, at)
        return error, answer[at + 4 : at + 4 + max(size, 0)]

    def fetch_batches(self, topic: str, partition: int, offset: int = 0) -> bytes:
        """The record batches from `offset` on, as they are on the wire."""
        error, records = self.fetch(topic, partition, offset)
        assert error == 0, error
        return records

    def send_produce(
        self, topic: str, partition: int, records: bytes, version: int, acks: int = -1
    ) -> None:
        """Produce v3 to v8 with these batches."""
        self.send_request(API_PRODUCE, version, produce_body(topic, {partition: records}, acks))

    def receive_produced(self, topic: str, partition: int) -> tuple[int, int]:
        """Error and base offset."""
        answer = self.receive_frame()[4:]
        index, error, offset = struct.unpack_from(">ihq", answer, 4 + 2 + len(topic.encode()) + 4)
        assert index == partition
        return error, offset

    def produce_at(
        self, topic: str, partition: int, records: bytes, version: int
    ) -> tuple[int, int]:
        """Error and base offset of Produce v3 to v8 with these batches, for acks=all."""
        self.send_produce(topic, partition, records, version)
        return self.receive_produced(topic, partition)

    def produce(self, topic: str, partition: int, records: bytes, version: int) -> int:
        """The error alone."""
        return self.produce_at(topic, partition, records, version)[0]

    def produce_messages(self, topic: str, partition: int, messages: bytes) -> int:
        """The error of Produce v2, which may hold messages of before batches, for acks=all."""
        name = topic.encode()
        body = struct.pack(f">hiih{len(name)}s", -1, 10_000, 1, len(name), name)
        body += struct.pack(">iii", 1, partition, len(messages)) + messages
        answer = self.ask(API_PRODUCE, 2, body)
        return struct.unpack_from(">h", answer, 4 + 2 + len(name) + 4 + 4)[0]

    def closed_by_broker(self) -> bool:
        """True once the broker closed the connection without sending a byte; False if it sends one
        or lets the timeout pass."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


def produce_body(topic: str, records: dict[int, bytes], acks: int) -> bytes:
    """A Produce request, v3 to v8, of these batches by partition."""
    name = topic.encode()
    body = struct.pack(f">hhiih{len(name)}s", -1, acks, 10_000, 1, len(name), name)
    parts = [struct.pack(">ii", number, len(of)) + of for number, of in records.items()]
    return body + struct.pack(">i", len(parts)) + b"".join(parts)


def fetch_body(
    version: int, topic: str, partitions: Collection[int], offset: int, wait_ms: int
) -> bytes:
    """A Fetch request, v4 to v10, of partitions of one topic and without a session."""
    name = topic.encode()
    body = struct.pack(">iiiib", -1, wait_ms, 1, FETCH_BYTES_MAX, 0)
    if version >= 7:
        body += struct.pack(">ii", 0, -1)  # no session
    body += struct.pack(f">ih{len(name)}si", 1, len(name), name, len(partitions))
    for partition in partitions:
        body += struct.pack(">i", partition)
        if version >= 9:
            body += struct.pack(">i", -1)  # leader epoch not known
        body += struct.pack(">q", offset)
        if version >= 5:
            body += struct.pack(">q", -1)  # log start, of followers only
        body += struct.pack(">i", FETCH_BYTES_MAX)
    return body + (struct.pack(">i", 0) if version >= 7 else b"")  # nothing forgotten


def magics_of(records: bytes) -> set[int]:
    """The format numbers of the whole batches, or messages of before batches, in these records."""
    magics, at = set(), 0
    while at + 17 <= len(records):
        magics.add(records[at + 16])
        (length,) = struct.unpack_from(">i", records, at + 8)
        at += 12 + length
    return magics


def first_batch(batches: bytes) -> tuple[bytes, int]:
    """The V2 batch at the front, and the number of its records."""
    (length,) = struct.unpack_from(">i", batches, 8)
    (records,) = struct.unpack_from(">i", batches, 57)
    return batches[: 12 + length], records


def codecs_of_batches(batches: bytes) -> list[int]:
    """The codec number in the attributes of each whole V2 batch."""
    codecs, at = [], 0
    while at + 61 <= len(batches):
        (length,) = struct.unpack_from(">i", batches, at + 8)
        magic = batches[at + 16]
        assert magic == 2, f"magic {magic} at byte {at}"
        (attributes,) = struct.unpack_from(">h", batches, at + 21)
        codecs.append(attributes & 7)
        at += 12 + length
    return codecs
