"""What a cluster that grows or shrinks says of itself, by the command line tool; and waiting until all
is spread evenly."""

import json

from harness.tool import Tool, run

from parts.cluster import SLOWDOWN
from parts.waiting import until

EVEN_SECONDS_MAX = 120 * SLOWDOWN


def told(cluster, *words: str) -> dict:
    """Asked again while there is no controller."""

    def answer() -> dict | None:
        outcome = run("-b", tool_of(cluster).address, "-o", "json", "cluster", *words)
        return json.loads(outcome.output) if outcome.code == 0 else None

    return until(answer, 30, f"an answer to cluster {words}")


def tool_of(cluster) -> Tool:
    return Tool(next(one.address for one in cluster.brokers.values() if one.running))


def status(cluster) -> dict:
    return told(cluster, "status")


def shares(cluster) -> dict[int, dict]:
    return {broker["id"]: broker for broker in status(cluster)["brokers"]}


def is_even(now: dict) -> bool:
    """Nothing moves or has to, everybody leads its share, and all are in sync."""
    brokers = [broker for broker in now["brokers"] if broker["live"] and not broker["drained"]]
    spreads = [
        max(broker[what] for broker in brokers) - min(broker[what] for broker in brokers)
        for what in ("replicas", "leaders")
    ]
    at_rest = not (now["moving"] or now["left"] or now["under_replicated"] or now["offline"])
    return at_rest and max(spreads) <= 1


def wait_until_even(cluster) -> None:
    """Among all that run, once it is known of each."""
    seen = []

    def even() -> bool:
        seen[:] = [status(cluster)]
        live = {broker["id"] for broker in seen[0]["brokers"] if broker["live"]}
        running = {id for id, broker in cluster.brokers.items() if broker.running}
        return live == running and is_even(seen[0])

    try:
        until(even, EVEN_SECONDS_MAX, "even shares")
    except AssertionError as late:
        raise AssertionError(f"{late}: {seen}") from None


def assert_has_its_share(cluster, id: int) -> None:
    now = shares(cluster)
    for what in ("replicas", "leaders"):
        fair = sum(broker[what] for broker in now.values()) / len(now)
        assert abs(now[id][what] - fair) < 1, f"{what}: {now}"
