"""What the tests ask of a client, whichever it is. One class per client in the files beside this
one."""

import time
from abc import ABC, abstractmethod

from harness.records import Headers, Record

UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
MESSAGE_TOO_LARGE = 10
UNSUPPORTED_COMPRESSION_TYPE = 76

DEADLINE_SECONDS = 60
"""For any one call; a test that meets it has failed."""


class ClientError(Exception):
    """What the client reports of the broker's answer; `code` is Kafka's number for it."""

    def __init__(self, code: int, text: str):
        super().__init__(f"{code}: {text}")
        self.code = code


class Client(ABC):
    name: str
    fixed_headers: Headers | None = None
    """For a client that gives all records of a call the same headers: which."""

    def __init__(self, address: str):
        self.address = address

    def close(self) -> None:
        """For clients that hold something between calls."""

    @abstractmethod
    def create_topic(self, topic: str, partitions: int) -> None:
        """By the client's own means; where it has none, by the broker's automatic creation."""

    @abstractmethod
    def partition_count(self, topic: str) -> int:
        """From metadata, without creating the topic."""

    @abstractmethod
    def produce(
        self,
        topic: str,
        records: list[Record],
        *,
        codec: str = "none",
        acks: str = "all",
        largest: int = 1_000_000,
    ) -> None:
        """All records, in order, as batches if the client likes; returns when all are
        acknowledged."""

    @abstractmethod
    def read(self, topic: str, partition: int, start: int | None = None) -> list[Record]:
        """From `start` (None: the first there is) to the end, by explicit assignment."""

    @abstractmethod
    def seek(self, topic: str, partition: int, offsets: list[int]) -> list[Record]:
        """The record found at each offset in turn, by one consumer where the client allows."""

    @abstractmethod
    def offset_at_time(self, topic: str, partition: int, timestamp: int) -> int | None:
        """Of the first record at or after that time; None if all are older."""

    @abstractmethod
    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The offsets of the first record and of the next one to come."""

    def wait_until_ready(self, topic: str, partitions: int) -> None:
        """Apache Kafka says that a topic is created before its partitions have their leader."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        for partition in range(partitions):
            while True:
                try:
                    self.bounds(topic, partition)
                    break
                except ClientError as failure:
                    not_yet = (
                        UNKNOWN_TOPIC_OR_PARTITION,
                        LEADER_NOT_AVAILABLE,
                        NOT_LEADER_OR_FOLLOWER,
                    )
                    if failure.code not in not_yet or time.monotonic() > deadline:
                        raise

    def read_all(self, topic: str, partitions: int) -> dict[int, list[Record]]:
        return {partition: self.read(topic, partition) for partition in range(partitions)}
