"""kcat, one process per call: an old librdkafka (2.0 on Debian 12), and what people have at
hand."""

import json
import re
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import confluent
from harness.client import (
    DEADLINE_SECONDS,
    MESSAGE_TOO_LARGE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_COMPRESSION_TYPE,
    Client,
    ClientError,
)
from harness.records import Record

END_OF_KEY, END_OF_RECORD = "<key ends>", "<record ends>"

# All that can be parsed without trust in the content: lengths come before the bytes.
FORMAT = r"%p %o %T %K %S %k%s%h\n"

CODE_OF_TEXT = {
    "Unknown topic or partition": UNKNOWN_TOPIC_OR_PARTITION,
    "Not leader for partition": NOT_LEADER_OR_FOLLOWER,
    "Message size too large": MESSAGE_TOO_LARGE,
    "Unsupported compression type": UNSUPPORTED_COMPRESSION_TYPE,
}


class Kcat(Client):
    name = "kcat"
    abilities = frozenset(
        {
            "append-time",
            "old-formats",
            "lz4-of-v0",
            "by-time",
            "idempotence",
            "in-flight",
            "quiet-metadata",
            "error-codes",
        }
    )
    fixed_headers = (("origin", b"kcat"), ("trace", b"0af7651916cd43dd"))

    def create_topic(self, topic, partitions, config=None) -> None:
        if config is None:
            self._let_create(topic, partitions)
        else:
            confluent.create_topic(self.address, topic, partitions, config)
        self.wait_until_ready(topic, partitions)

    def _let_create(self, topic: str, partitions: int) -> None:
        """kcat has no admin calls. Naming the topic makes the broker create it, with
        num.partitions, and the answer may still be that there is no such topic."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while "error" in (found := self.listed(topic)):
            assert time.monotonic() < deadline, found
        assert len(found["partitions"]) == partitions, found

    def partition_count(self, topic: str) -> int:
        # As a consumer, because the metadata request of a producer would create the topic.
        self._run("-C", "-t", topic, "-p", "0", "-o", "end", "-e")
        return len(self.listed(topic)["partitions"])

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
        """Records with a null value must be in a call of their own; so must records of one
        partition."""
        assert all(record.timestamp is None for record in records), "kcat cannot set timestamps"
        assert (
            len({(record.partition, record.headers, record.value is None) for record in records})
            == 1
        )
        first = records[0]
        options = [
            "-P",
            "-t",
            topic,
            "-z",
            codec,
            "-X",
            f"acks={acks}",
            "-X",
            f"linger.ms={linger_ms}",
            "-X",
            f"message.max.bytes={largest}",
            "-X",
            f"message.timeout.ms={DEADLINE_SECONDS * 1000}",
        ]
        if idempotent is not None:
            options += ["-X", f"enable.idempotence={str(idempotent).lower()}"]
        if in_flight is not None:
            options += ["-X", f"max.in.flight={in_flight}"]
        if first.partition is not None:
            options += ["-p", str(first.partition)]
        if first.value is None:
            options += ["-Z"]
        for name, value in first.headers:
            options += ["-H", f"{name}={value.decode()}"]
        if len(records) == 1 and first.value:
            # A file is one message, however large; a line of standard input is limited by kcat's
            # buffer.
            if first.key is not None:
                options += ["-k", first.key.decode()]
            with TemporaryDirectory() as folder:
                file = Path(folder) / "value"
                file.write_bytes(first.value)
                self._run(*options, str(file))
            return
        lines = [
            (b"" if record.key is None else record.key + END_OF_KEY.encode())
            + (record.value or b"")
            + END_OF_RECORD.encode()
            for record in records
        ]
        self._run(*options, "-K", END_OF_KEY, "-D", END_OF_RECORD, stdin=b"".join(lines))

    def read(self, topic, partition, start=None) -> list[Record]:
        first = "beginning" if start is None else str(start)
        return self._consume(topic, partition, first, "-e")

    def seek(self, topic, partition, offsets) -> list[Record]:
        return [self._consume(topic, partition, str(offset), "-c", "1")[0] for offset in offsets]

    def offset_at_time(self, topic, partition, timestamp) -> int | None:
        offset = self._query(topic, partition, timestamp)
        return None if offset == -1 else offset

    def bounds(self, topic, partition) -> tuple[int, int]:
        return self._query(topic, partition, -2), self._query(topic, partition, -1)

    def listed(self, topic: str) -> dict:
        """Its metadata, asked for as a producer does, so that the broker may create it."""
        return json.loads(self._run("-L", "-J", "-t", topic))["topics"][0]

    def read_last(self, topic: str, partition: int, count: int) -> list[Record]:
        """kcat's own way of counting from the end."""
        return self._consume(topic, partition, f"-{count}", "-e")

    def read_from_time(self, topic: str, partition: int, start: int, end: int) -> list[Record]:
        """kcat's own way of reading a span of time; `end` is not included."""
        return self._consume(topic, partition, f"s@{start}", "-o", f"e@{end}", "-e")

    def _consume(self, topic: str, partition: int, offset: str, *options: str) -> list[Record]:
        output = self._run(
            "-C",
            "-t",
            topic,
            "-p",
            str(partition),
            "-o",
            offset,
            "-f",
            FORMAT,
            "-X",
            "fetch.wait.max.ms=100",
            *options,
        )
        return list(_records(output))

    def _query(self, topic: str, partition: int, timestamp: int) -> int:
        output = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp}").decode()
        match = re.fullmatch(rf"{re.escape(topic)} \[{partition}\] offset (-?\d+)\n", output)
        assert match, output
        return int(match[1])

    def _run(self, *options: str, stdin: bytes | None = None) -> bytes:
        done = subprocess.run(
            ["kcat", "-b", self.address, "-m", "30", *options],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
        )
        said = done.stderr.decode(errors="replace")
        if done.returncode != 0 or "% ERROR" in said or "Delivery failed" in said:
            code = next((code for text, code in CODE_OF_TEXT.items() if text in said), -1)
            raise ClientError(code, said.strip())
        return done.stdout


def _records(output: bytes):
    at = 0
    while at < len(output):
        *numbers, rest = output[at : at + 100].split(b" ", 5)
        partition, offset, timestamp, key_length, value_length = map(int, numbers)
        at += sum(len(number) + 1 for number in numbers)
        key = None if key_length < 0 else output[at : at + key_length]
        at += max(key_length, 0)
        value = None if value_length < 0 else output[at : at + value_length]
        at += max(value_length, 0)
        end = output.index(b"\n", at)
        pairs = [pair.split(b"=", 1) for pair in output[at:end].split(b",") if pair]
        headers = tuple((name.decode(), content) for name, content in pairs)
        at = end + 1
        yield Record(key, value, headers, timestamp, partition, offset)
