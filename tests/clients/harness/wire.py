"""Raw connections: just enough of the protocol to see what a client library hides."""

import socket
import struct

API_FETCH, API_API_VERSIONS = 1, 18
FETCH_BYTES_MAX = 50 << 20


def api_versions_request(correlation: int) -> bytes:
    """A whole ApiVersions v0 request, length included."""
    body = struct.pack(">hhih4s", API_API_VERSIONS, 0, correlation, 4, b"test")
    return struct.pack(">i", len(body)) + body


class RawConnection:
    """A socket to the broker with a deadline on everything."""

    def __init__(self, address: str, timeout: float = 10):
        host, port = address.rsplit(":", 1)
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

    def send_fetch(self, topic: str, partition: int, offset: int, wait_ms: int) -> None:
        """Fetch v4 for at least one byte."""
        name = topic.encode()
        body = struct.pack(">hhih4s", API_FETCH, 4, 7, 4, b"test")
        body += struct.pack(">iiiib", -1, wait_ms, 1, FETCH_BYTES_MAX, 0)
        body += struct.pack(f">ih{len(name)}s", 1, len(name), name)
        body += struct.pack(">iiqi", 1, partition, offset, FETCH_BYTES_MAX)
        self.send(struct.pack(">i", len(body)) + body)

    def fetch_batches(self, topic: str, partition: int, offset: int = 0) -> bytes:
        """The record batches from `offset` on, as they are on the wire."""
        self.send_fetch(topic, partition, offset, wait_ms=1000)
        frame = self.receive_frame()
        # correlation, throttle, one topic, its name, one partition; then the partition's fields
        at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4
        index, error, _high, _stable, aborted = struct.unpack_from(">ihqqi", frame, at)
        assert (index, error) == (partition, 0), (index, error)
        at += 26 + max(aborted, 0) * 16
        (size,) = struct.unpack_from(">i", frame, at)
        return frame[at + 4 : at + 4 + size]

    def closed_by_broker(self) -> bool:
        """True once the broker closed the connection without sending a byte; False if it sends one
        or lets the timeout pass."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


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
