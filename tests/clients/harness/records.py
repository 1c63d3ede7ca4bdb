"""Records as the tests see them, and what it means that they came back as they were sent."""

from collections import Counter
from dataclasses import dataclass, field

Headers = tuple[tuple[str, bytes | None], ...]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Record:
    """Two records are equal if a user sees no difference; where and when they were stored is beside
    that."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = field(
        default=None, compare=False
    )  # ms; None when sent: the client's clock
    partition: int | None = field(
        default=None, compare=False
    )  # None when sent: the client's choice
    offset: int | None = field(default=None, compare=False)  # known once stored

    def __repr__(self) -> str:
        def short(data: bytes | None) -> str:
            return (
                repr(data)
                if data is None or len(data) <= 40
                else f"{data[:40]!r}…({len(data)} bytes)"
            )

        place = "" if self.offset is None else f" at {self.partition}:{self.offset}"
        return f"<{short(self.key)} → {short(self.value)} {dict(self.headers)}{place}>"


def numbered_records(count: int, *, headers: Headers | None = None) -> list[Record]:
    """`count` different records of 17 to 216 bytes over 97 keys. The value starts with the number
    of the record; `headers`, for a client that cannot vary them, replaces the two that carry the
    number too."""

    def one(n: int) -> Record:
        filler = bytes((n * 31 + i * 7) % 251 for i in range(n % 200))
        own = headers if headers is not None else (("number", b"%d" % n), ("origin", b"tests"))
        return Record(b"key-%02d" % (n % 97), b"%016d " % n + filler, own)

    return [one(n) for n in range(count)]


def number_of(record: Record) -> int:
    return int(record.value[:16])


def assert_same_and_in_order(sent: list[Record], partitions: dict[int, list[Record]]) -> None:
    """Every record came back once and byte-equal; each partition has them in the order of sending,
    at offsets without a gap; and all records of a key are in one partition."""
    stored = [record for records in partitions.values() for record in records]
    missing, surplus = Counter(sent) - Counter(stored), Counter(stored) - Counter(sent)
    assert not missing and not surplus, (
        f"sent {len(sent)}, read {len(stored)}: "
        f"{missing.total()} missing, e.g. {list(missing)[:3]}; "
        f"{surplus.total()} not as sent, e.g. {list(surplus)[:3]}"
    )
    partition_of_key: dict[bytes | None, int] = {}
    for partition, records in partitions.items():
        assert [record.offset for record in records] == list(range(len(records))), (
            f"partition {partition}"
        )
        numbers = [number_of(record) for record in records]
        assert numbers == sorted(numbers), f"partition {partition} is not in the order of sending"
        for record in records:
            assert partition_of_key.setdefault(record.key, partition) == partition, record
