"""Apache Kafka's own Java client, in one long-lived process: java/RecordClient.java, spoken to in
lines."""

import base64
import os
import selectors
import subprocess
import time

from harness import maven
from harness.client import DEADLINE_SECONDS, Client, ClientError
from harness.paths import SOURCE
from harness.records import Record

PROGRAM = SOURCE / "tests" / "clients" / "java" / "RecordClient.java"


class Java(Client):
    name = "java"

    def __init__(self, address: str):
        super().__init__(address)
        self.process = subprocess.Popen(
            [
                "java",
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                maven.classpath("client"),
                PROGRAM,
                address,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self.unread = b""

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def create_topic(self, topic: str, partitions: int) -> None:
        self._ask("create", topic, partitions)

    def partition_count(self, topic: str) -> int:
        return int(self._ask("partitions", topic)[0])

    def produce(self, topic, records, *, codec="none", acks="all", largest=1_000_000) -> None:
        self._ask("produce", topic, codec, acks, largest, len(records), lines=map(_line, records))

    def read(self, topic, partition, start=None) -> list[Record]:
        return list(
            map(_record, self._ask("read", topic, partition, -1 if start is None else start))
        )

    def seek(self, topic, partition, offsets) -> list[Record]:
        return list(map(_record, self._ask("seek", topic, partition, *offsets)))

    def offset_at_time(self, topic, partition, timestamp) -> int | None:
        offset = int(self._ask("time", topic, partition, timestamp)[0])
        return None if offset < 0 else offset

    def bounds(self, topic, partition) -> tuple[int, int]:
        first, end = self._ask("bounds", topic, partition)[0].split("\t")
        return int(first), int(end)

    def _ask(self, *words: object, lines=()) -> list[str]:
        """One command, with the record lines that follow it; returns the lines of the answer."""
        request = ["\t".join(map(str, words)), *lines]
        self.process.stdin.write(("\n".join(request) + "\n").encode())
        deadline = time.monotonic() + DEADLINE_SECONDS
        answer = []
        while not (line := self._line(deadline)).startswith(("ok", "error\t")):
            answer.append(line.removeprefix("= "))
        if line.startswith("error"):
            _, code, text = line.split("\t", 2)
            raise ClientError(int(code), text)
        return answer

    def _line(self, deadline: float) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.unread:
                assert selector.select(max(0, deadline - time.monotonic())), "no answer in time"
                part = os.read(self.process.stdout.fileno(), 1 << 20)
                assert part, f"the Java client ended with code {self.process.wait(timeout=10)}"
                self.unread += part
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode()


def _encode(data: bytes | None) -> str:
    return "-" if data is None else base64.b64encode(data).decode()


def _decode(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)


def _line(record: Record) -> str:
    headers = ",".join(f"{name}:{_encode(value)}" for name, value in record.headers)
    partition = -1 if record.partition is None else record.partition
    timestamp = -1 if record.timestamp is None else record.timestamp
    return (
        f"{partition}\t-1\t{timestamp}\t{_encode(record.key)}\t{_encode(record.value)}\t{headers}"
    )


def _record(line: str) -> Record:
    partition, offset, timestamp, key, value, headers = line.split("\t")
    pairs = (pair.split(":") for pair in headers.split(",") if pair)
    return Record(
        _decode(key),
        _decode(value),
        tuple((name, _decode(content)) for name, content in pairs),
        int(timestamp),
        int(partition),
        int(offset),
    )
