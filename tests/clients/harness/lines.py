"""A client in a process of its own, in whatever language: a program in drivers/, driven by
lines. drivers/README.md describes them."""

import base64
import os
import selectors
import subprocess
import time
from abc import abstractmethod

from harness import confluent
from harness.client import DEADLINE_SECONDS, Client, ClientError, Setting
from harness.records import Record


class LineClient(Client):
    """The process starts with the first question and serves until close()."""

    def __init__(self, address: str):
        super().__init__(address)
        self.process: subprocess.Popen | None = None
        self.unread = b""

    @classmethod
    @abstractmethod
    def command(cls) -> list[object]:
        """The program; the broker's address is added."""

    @classmethod
    def prepare(cls) -> None:
        cls.command()

    def close(self) -> None:
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def create_topic(self, topic, partitions, config=None) -> None:
        if "topics" in self.abilities:
            self._ask("create", topic, partitions, *_pairs(config or {}))
        else:
            confluent.create_topic(self.address, topic, partitions, config)
        self.wait_until_ready(topic, partitions)

    def partition_count(self, topic) -> int:
        return int(self._ask("partitions", topic)[0])

    def produce(
        self,
        topic,
        records,
        *,
        codec="none",
        acks="all",
        largest=1_000_000,
        idempotent=None,
        in_flight=None,
        linger_ms=20,
    ) -> None:
        options = {
            "codec": codec,
            "acks": acks,
            "largest": largest,
            "linger": linger_ms,
            **({} if idempotent is None else {"idempotent": str(idempotent).lower()}),
            **({} if in_flight is None else {"in-flight": in_flight}),
        }
        self._ask("produce", topic, len(records), *_pairs(options), lines=map(_line, records))

    def read(self, topic, partition, start=None) -> list[Record]:
        return self._records("read", topic, partition, -1 if start is None else start)

    def seek(self, topic, partition, offsets) -> list[Record]:
        return self._records("seek", topic, partition, *offsets)

    def offset_at_time(self, topic, partition, timestamp) -> int | None:
        offset = int(self._ask("time", topic, partition, timestamp)[0])
        return None if offset < 0 else offset

    def bounds(self, topic, partition) -> tuple[int, int]:
        first, end = self._ask("bounds", topic, partition)[0].split("\t")
        return int(first), int(end)

    def delete_topic(self, topic) -> None:
        self._ask("delete", topic)

    def list_topics(self) -> list[str]:
        return self._ask("list")

    def grow(self, topic, partitions) -> None:
        self._ask("grow", topic, partitions)

    def trim(self, topic, partition, offset) -> int:
        return int(self._ask("trim", topic, partition, offset)[0])

    def describe(self, topic) -> dict[str, Setting]:
        return dict(map(_setting, self._ask("describe", "topic", topic)))

    def describe_broker(self, broker) -> dict[str, Setting]:
        return dict(map(_setting, self._ask("describe", "broker", broker)))

    def alter(self, topic, config) -> None:
        self._ask("alter", topic, *_pairs(config))

    def adjust(self, topic, operation, name, value="") -> None:
        self._ask("adjust", topic, operation, name, value)

    def follow(self, topic, partitions) -> None:
        self._ask("follow", topic, *partitions)

    def take(self, count) -> list[Record]:
        return self._records("take", count)

    def _records(self, *words: object) -> list[Record]:
        return list(map(_record, self._ask(*words)))

    def _ask(self, *words: object, lines=()) -> list[str]:
        """One command, with the record lines that follow it; returns the lines of the answer."""
        if self.process is None:
            self.process = subprocess.Popen(
                [*self.command(), self.address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            )
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
                if not selector.select(max(0, deadline - time.monotonic())):
                    self._give_up("no answer in time")
                part = os.read(self.process.stdout.fileno(), 1 << 20)
                if not part:
                    self._give_up("it ended")
                self.unread += part
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode()

    def _give_up(self, why: str) -> None:
        """The next question starts a new process: one that hangs fails one test, not all."""
        self.process.kill()
        code = self.process.wait()
        self.process, self.unread = None, b""
        raise AssertionError(f"{self.name}: {why} (code {code})")


def _pairs(options: dict[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in options.items()]


def _encode(data: bytes | None) -> str:
    return "-" if data is None else base64.b64encode(data).decode()


def _decode(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)


def _line(record: Record) -> str:
    headers = ",".join(f"{name}:{_encode(value)}" for name, value in record.headers)
    partition = -1 if record.partition is None else record.partition
    timestamp = "-" if record.timestamp is None else record.timestamp
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
        None if timestamp == "-" else int(timestamp),
        int(partition),
        int(offset),
    )


def _setting(line: str) -> tuple[str, Setting]:
    name, value, source, read_only, synonyms = line.split("\t")
    parts = (synonym.split(":") for synonym in synonyms.split(",") if synonym)
    return name, Setting(
        _text(value),
        int(source),
        read_only == "true",
        tuple((other, _text(content), int(where)) for other, content, where in parts),
    )


def _text(encoded: str) -> str | None:
    data = _decode(encoded)
    return None if data is None else data.decode()
