"""What is asked of Millrace: a figure of its own, or its ratio to the peer's."""

from dataclasses import dataclass

LESS_IS_BETTER = ("ms", "MiB", "s/GB", "us/message", "us/request", "% of a core", "in s")
"""The endings of such figures."""


@dataclass(frozen=True)
class Limit:
    case: str
    figure: str
    of_peer: float | None = None
    absolute: float | None = None

    def applies(self, case: str, figure: str) -> bool:
        return case.startswith(self.case) and figure.endswith(self.figure)


LIMITS = [
    Limit("produce", "MB/s", of_peer=1),
    Limit("consume", "MB/s", of_peer=1),
    Limit("small requests", "requests/s", of_peer=1),
    Limit("produce", "broker CPU s/GB", of_peer=0.6),
    Limit("consume", "broker CPU s/GB", of_peer=0.6),
    Limit("small requests", "broker CPU us/request", of_peer=0.3),
    Limit("start", "first answer ms", absolute=200),
    Limit("idle", "resident MiB", absolute=64),
    Limit("memory under load", "peak resident MiB", absolute=256),
    Limit("group heartbeats", "% of a core", absolute=5),
    Limit("1,000 idle connections", "% of a core", absolute=1),
    Limit("1,000 idle partitions", "% of a core", absolute=1),
]


def less_is_better(figure: str) -> bool:
    return figure.endswith(LESS_IS_BETTER)


def limit_of(case: str, figure: str) -> Limit | None:
    return next((limit for limit in LIMITS if limit.applies(case, figure)), None)


def is_kept(limit: Limit, ours: float, peers: float | None) -> bool | None:
    """None when that cannot be told without the peer's figure."""
    bound = limit.absolute
    if limit.of_peer is not None:
        if peers is None:
            return None
        bound = limit.of_peer * peers
    return ours <= bound if less_is_better(limit.figure) else ours >= bound
