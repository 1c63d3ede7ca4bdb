"""What was sent, acknowledged and read, in the order in which it was seen; and what of it a cluster
may never show. Nothing here talks to a broker: a history is data, written down by `load` and
`readers`, or by hand.

Of a topic with one idempotent producer that waits for all replicas:

- each acknowledged message is in the log once, where the acknowledgement says;
- the log has no message that was not sent, none twice, and those of a key in the order of sending;
- what any reader was shown stays: at that place, in the log at the end;
- a reader goes forward.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sent:
    number: int
    key: str


@dataclass(frozen=True)
class Acknowledged:
    number: int
    partition: int
    offset: int


@dataclass(frozen=True)
class Read:
    reader: str
    partition: int
    offset: int
    number: int


@dataclass
class History:
    sent: list[Sent] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    """While faults happened; of each reader in the order in which it was shown them."""
    log: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Of each partition all (offset, number), read from its start once all is well again."""


def violations(history: History) -> list[str]:
    """Sentences, one for each thing that must not be; none: all is well."""
    at = {(p, offset): number for p, records in history.log.items() for offset, number in records}
    return [
        *_of_the_log(history),
        *_of_acknowledgements(history, at),
        *_of_the_order(history),
        *_of_reads(history, at),
    ]


def _of_the_log(history: History):
    sent = {one.number for one in history.sent}
    counts = Counter(number for records in history.log.values() for _, number in records)
    for number, count in counts.items():
        if number not in sent:
            yield f"message {number} is in the log and was never sent"
        if count > 1:
            yield f"message {number} is in the log {count} times"


def _of_acknowledgements(history: History, at: dict[tuple[int, int], int]):
    stored = set(at.values())
    given: dict[tuple[int, int], int] = {}
    for one in history.acknowledged:
        place = (one.partition, one.offset)
        if one.number not in stored:
            yield f"message {one.number} was acknowledged at {one.partition}:{one.offset} and is lost"
        elif at.get(place) != one.number:
            yield (
                f"message {one.number} was acknowledged at {one.partition}:{one.offset}, where "
                f"{at.get(place, 'nothing')} is"
            )
        if given.setdefault(place, one.number) != one.number:
            yield (
                f"messages {given[place]} and {one.number} were both acknowledged at "
                f"{one.partition}:{one.offset}"
            )


def _of_the_order(history: History):
    key_of = {one.number: one.key for one in history.sent}
    rank_of = {one.number: rank for rank, one in enumerate(history.sent)}
    homes: dict[str, int] = {}
    for partition, records in history.log.items():
        latest: dict[str, int] = {}
        for offset, number in records:
            key = key_of.get(number)
            if key is None:
                continue
            if homes.setdefault(key, partition) != partition:
                yield f"key {key} is in partitions {homes[key]} and {partition}"
            before = latest.get(key)
            if before is not None and rank_of[number] < rank_of[before]:
                yield f"key {key}: message {number} at {partition}:{offset} stands after {before}"
            latest[key] = number
        offsets = [offset for offset, _ in records]
        if offsets != sorted(set(offsets)):
            yield f"partition {partition} was read with offsets that do not rise"


def _of_reads(history: History, at: dict[tuple[int, int], int]):
    position: dict[tuple[str, int], int] = defaultdict(lambda: -1)
    for one in history.reads:
        place = f"{one.partition}:{one.offset}"
        if one.offset <= position[one.reader, one.partition]:
            yield (
                f"{one.reader} went back from {one.partition}:"
                f"{position[one.reader, one.partition]} to {place}"
            )
        position[one.reader, one.partition] = one.offset
        kept = at.get((one.partition, one.offset))
        if kept != one.number:
            now = "nothing is there now" if kept is None else f"message {kept} is there now"
            yield f"{one.reader} was shown message {one.number} at {place}; {now}"
