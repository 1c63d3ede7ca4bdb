"""Leaders that others follow as leaders although nobody has died, as a balance or an administrator moves them."""

from harness.groups import NONE, Question, Reader, array, ask, compact_array, compact_text, i32, text
from harness.wire import RawConnection

from parts.cluster import HEAL_SECONDS_MAX, Cluster
from parts.waiting import until

ELECT_LEADERS, ALTER_PARTITION_REASSIGNMENTS = 43, 45
PREFERRED = b"\0"
ELECTION_NOT_NEEDED = 84
TIMEOUT_MS = 30_000
STILL = {"cluster.balance.enable": "false", "auto.leader.rebalance.enable": "false"}
"""Settings with which nothing moves but what a test moves."""


def _reassignment(topic: str, partition: int, replicas: list[int]) -> Question:
    """Answered with the errors of the request and of the partition."""
    one = i32(partition) + compact_array(map(i32, replicas)) + b"\0"
    body = i32(TIMEOUT_MS) + compact_array([compact_text(topic) + compact_array([one]) + b"\0"]) + b"\0"

    def row(reader: Reader) -> int:
        reader.i32()
        error = reader.i16()
        reader.text()
        reader.tags()
        return error

    def of_topic(reader: Reader) -> list[int]:
        reader.text()
        errors = reader.array(lambda: row(reader))
        reader.tags()
        return errors

    def read(reader: Reader) -> set[int]:
        reader.i32()
        error = reader.i16()
        reader.text()
        return {error, *sum(reader.array(lambda: of_topic(reader)), [])}

    return Question(ALTER_PARTITION_REASSIGNMENTS, 0, body, read, flexible=True)


def _election(topic: str, partition: int) -> Question:
    """Of the first of its replicas; answered with the errors of the request and of the partition."""
    body = PREFERRED + array([text(topic) + array([i32(partition)])]) + i32(TIMEOUT_MS)

    def row(reader: Reader) -> int:
        reader.i32()
        error = reader.i16()
        reader.text()
        return error

    def read(reader: Reader) -> set[int]:
        reader.i32()
        error = reader.i16()
        found = reader.array(lambda: (reader.text(), reader.array(lambda: row(reader)))[1])
        return {error, *sum(found, [])}

    return Question(ELECT_LEADERS, 1, body, read)


def move_leader(cluster: Cluster, topic: str, partition: int = 0) -> int:
    """To the next of its replicas, which is the preferred one from then on; who leads then."""
    first, *rest = cluster.states(topic)[partition].replicas
    wanted = [*rest, first]
    with RawConnection(cluster.brokers[cluster.controller()].address) as connection:
        errors = ask(connection, _reassignment(topic, partition, wanted))
        assert errors == {NONE}, errors
        errors = ask(connection, _election(topic, partition))
        assert errors <= {NONE, ELECTION_NOT_NEEDED}, errors
    until(
        lambda: cluster.leader(topic, partition) == wanted[0],
        HEAL_SECONDS_MAX,
        f"{topic}-{partition} led by {wanted[0]}",
    )
    return wanted[0]
