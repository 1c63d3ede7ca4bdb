"""What is asked of Millrace: a figure of its own, or its ratio to the peer's."""

from dataclasses import dataclass

LESS_IS_BETTER = (
    "ms",
    "MiB",
    "s/GB",
    "us/message",
    "us/request",
    "CPU s",
    "% of a core",
    "in s",
    "worst s",
    "times alone",
)
"""The endings of such figures."""


@dataclass(frozen=True)
class Limit:
    case: str
    figure: str
    of_peer: float | None = None
    """Of the best of them, where there are several."""
    absolute: float | None = None
    of_floor: float | None = None
    """Of what no program can do without (`the floor` of the case, or of the run): whichever of this and `of_peer` allows
    more."""

    def applies(self, case: str, figure: str) -> bool:
        return case.startswith(self.case) and figure.endswith(self.figure)


LIMITS = [
    Limit("produce", "MB/s", of_peer=1),
    Limit("consume", "MB/s", of_peer=1),
    Limit("1,000 partitions", "MB/s", of_peer=1),
    Limit("small requests, 8 connections", "requests/s", of_peer=3),
    Limit("small requests", "requests/s", of_peer=1),
    Limit("produce 1 KiB, ", "broker CPU s/GB", of_peer=0.4, of_floor=1.3),
    Limit("produce 100 KiB, ", "broker CPU s/GB", of_peer=0.4, of_floor=1.3),
    Limit("produce 100 B, ", "broker CPU s/GB", of_peer=0.3, of_floor=1.5),
    Limit("produce 1 KiB lz4, ", "broker CPU s/GB", of_peer=0.3),
    Limit("produce 1 KiB zstd, ", "broker CPU s/GB", of_peer=0.3),
    Limit("produce", "broker CPU s/GB", of_peer=0.6),
    Limit("1,000 partitions", "broker CPU s/GB", of_peer=0.15),
    Limit("consume", "broker CPU s/GB", of_peer=0.4, of_floor=1.5),
    Limit("small requests, 8 connections, depth 16", "broker CPU us/request", of_peer=0.1, of_floor=3),
    Limit("small requests, 8 connections, depth 1", "broker CPU us/request", of_peer=0.2, of_floor=1.5),
    Limit("small requests", "broker CPU us/request", of_peer=0.3, of_floor=1.5),
    Limit("end to end", "broker CPU us/message", of_peer=0.1, of_floor=2),
    Limit("end to end", "p50 ms", of_peer=0.4),
    Limit("end to end", "p99 ms", of_peer=0.4),
    Limit("start", "first answer ms", absolute=200),
    Limit("start", "CPU s", of_peer=0.02),
    Limit("idle", "resident MiB", of_peer=0.08),
    Limit("memory under load", "peak resident MiB", of_peer=0.15),
    Limit("recovery", "CPU s", of_peer=0.1),
    Limit("recovery", "all served in s", of_peer=0.1),
    Limit("group heartbeats", "% of a core", absolute=5),
    Limit("1,000 idle connections", "% of a core", absolute=1),
    Limit("1,000 idle partitions", "% of a core", absolute=1),
    Limit("a tail beside a reader", "cold, p99 ms", of_peer=0.3),
    Limit("a tail beside a reader", "p99 times alone", absolute=1.2),
    Limit("10,000 partitions", "resident MiB", absolute=300),
    Limit("10,000 partitions", "idle, % of a core", absolute=2),
    Limit("10,000 partitions", "after a stop, all served in s", absolute=2),
    Limit("10,000 partitions", "after a kill, all served in s", absolute=10),
    Limit("RF 3, produce", "MB/s", of_peer=1),
    Limit("RF 3, produce", "broker CPU s/GB", of_peer=0.25, of_floor=1.5),
    Limit("RF 3, idle", "% of a core", absolute=1),
    Limit("RF 3, 1,000 messages/s", "p99 ms", of_peer=0.5),
    Limit("RF 3, leader stopped, Java", "worst ms", absolute=250),
    Limit("RF 3, leader stopped, librdkafka", "worst ms", absolute=600),
    Limit("RF 3, leader killed", "worst s", absolute=6.5),
    Limit("RF 3, 3,000 partitions", "created in s", absolute=5),
    Limit("RF 3, 3,000 partitions", "% of a core", absolute=1),
    Limit("RF 3, 3,000 partitions", "its replicas in sync in s", absolute=2),
    Limit("RF 3, 3,000 partitions", "leaders of a dead broker moved in s", absolute=2),
]


def less_is_better(figure: str) -> bool:
    return figure.endswith(LESS_IS_BETTER)


def limit_of(case: str, figure: str) -> Limit | None:
    return next((limit for limit in LIMITS if limit.applies(case, figure)), None)


def is_kept(
    limit: Limit, ours: float, peers: list[float], floor: float | None = None
) -> bool | None:
    """None when that cannot be told without a peer's figure."""
    less = less_is_better(limit.figure)
    bounds = []
    if limit.absolute is not None:
        bounds.append(limit.absolute)
    if limit.of_floor is not None and floor is not None:
        bounds.append(limit.of_floor * floor)
    if limit.of_peer is not None and peers:
        bounds.append(limit.of_peer * (min(peers) if less else max(peers)))
    kept = any(ours <= bound if less else ours >= bound for bound in bounds)
    if not kept and limit.of_peer is not None and not peers:
        return None
    return kept
