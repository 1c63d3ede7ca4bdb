"""What the tests ask of a client, whichever it is. One class per client in the files beside this
one."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.records import CODECS, Headers, Record

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
MESSAGE_TOO_LARGE = 10
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_CONFIG = 40
UNKNOWN_SERVER_ERROR = -1
UNSUPPORTED_COMPRESSION_TYPE = 76

ABILITIES = {
    "headers": "each record has headers of its own",
    "timestamps": "a record can be given its time",
    "timeless": "sends records without a time, as those of format V0 are",
    "old-formats": "reads records in the formats V0 and V1",
    "lz4-of-v0": "... and LZ4 in format V0, whose frames have another checksum than all other LZ4",
    "by-time": "finds the offset of a time",
    "follow": "one consumer reads partitions that change meanwhile",
    "idempotence": "an idempotent producer",
    "in-flight": "... that sends up to five requests before the first is answered",
    "append-time": "shows the time that the broker gave where the topic says so",
    "quiet-metadata": "asks for a topic without creating it",
    "error-codes": "tells Kafka's number of the error of a failed send",
    "topics": "creates, lists and deletes topics",
    "grow": "adds partitions to a topic",
    "trim": "deletes the first records of a partition",
    "configs": "describes settings",
    "synonyms": "... and where each value may come from",
    "alter": "replaces all settings of a topic (AlterConfigs)",
    "refusals": "... and tells why that was refused",
    "adjust": "changes single settings (IncrementalAlterConfigs)",
}
"""What not every client can. A test that needs one is left out for the clients without it, and the
table at the end of a run says so."""

DEADLINE_SECONDS = 60
"""For any one call; a test that meets it has failed."""


class ClientError(Exception):
    """What the client reports of the broker's answer; `code` is Kafka's number for it."""

    def __init__(self, code: int, text: str):
        super().__init__(f"{code}: {text}")
        self.code = code


@dataclass(frozen=True)
class Setting:
    """One setting as a broker describes it. `source` is Kafka's number: 1 the topic, 2 one broker
    while it runs, 3 all brokers while they run, 4 the broker's file, 5 the default."""

    value: str | None
    source: int
    read_only: bool = False
    synonyms: tuple[tuple[str, str | None, int], ...] = ()
    """(name, value, source), the one in force first."""


class Client(ABC):
    name: str
    abilities: frozenset[str] = frozenset()
    codecs: tuple[str, ...] = CODECS
    """It can write and read."""
    fixed_headers: Headers | None = None
    """For a client that gives all records of a call the same headers: which."""
    sees_headers = True

    @classmethod
    def prepare(cls) -> None:
        """Builds or installs what the client consists of, unless that is done."""

    def __init__(self, address: str):
        self.address = address

    def close(self) -> None:
        """For clients that hold something between calls."""

    @abstractmethod
    def create_topic(
        self, topic: str, partitions: int, config: dict[str, str] | None = None
    ) -> None:
        """By the client's own means where it has some; returns when its partitions answer."""

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
        idempotent: bool | None = None,
        in_flight: int | None = None,
        linger_ms: int = 20,
    ) -> None:
        """All records, in order, as batches if the client likes; returns when all are
        acknowledged. None is what the client does by itself."""

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

    # --- What a client has by its abilities ---

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError

    def list_topics(self) -> list[str]:
        raise NotImplementedError

    def grow(self, topic: str, partitions: int) -> None:
        """So that it has that many partitions."""
        raise NotImplementedError

    def trim(self, topic: str, partition: int, offset: int) -> int:
        """Deletes the records before `offset` (-1: all); returns the first offset that is left."""
        raise NotImplementedError

    def describe(self, topic: str) -> dict[str, Setting]:
        raise NotImplementedError

    def describe_broker(self, broker: int) -> dict[str, Setting]:
        raise NotImplementedError

    def alter(self, topic: str, config: dict[str, str]) -> None:
        """What is not in `config` goes back to its default."""
        raise NotImplementedError

    def adjust(self, topic: str, operation: str, name: str, value: str = "") -> None:
        """`operation` is set, delete, append or subtract."""
        raise NotImplementedError

    def follow(self, topic: str, partitions: list[int]) -> None:
        """From now on `take` reads these. Those it read before go on where they were, new ones
        start at their first record. No partition ends it."""
        raise NotImplementedError

    def take(self, count: int) -> list[Record]:
        """The next records of the partitions followed, as soon as there are that many; a few more
        if they came along."""
        raise NotImplementedError

    # --- The same for all ---

    def seen(self, records: list[Record]) -> list[Record]:
        """How this client reads them back."""
        if self.sees_headers:
            return records
        return [replace(record, headers=()) for record in records]

    def wait_until_ready(self, topic: str, partitions: int) -> None:
        """Apache Kafka says that a topic is created before its partitions have their leader."""
        self._wait_until_answered(self.bounds, topic, partitions)

    @staticmethod
    def _wait_until_answered(ask: Callable, topic: str, partitions: int) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        for partition in range(partitions):
            while True:
                try:
                    ask(topic, partition)
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
