"""Replicas over racks, as brokers are told theirs by `broker.rack`: of a new topic, of one that grows, of one that moves
to a broker that joins."""

import pytest
from confluent_kafka.admin import NewPartitions

from parts.growth import EVEN_SECONDS_MAX
from parts.waiting import until

pytestmark = pytest.mark.slow

RACKS = ("north", "south")


def racks_of(cluster) -> dict[int, str]:
    """As clients are told them."""
    admin = cluster.admin()  # which lives until it is answered
    told = admin.describe_cluster(request_timeout=30).result(60)
    return {node.id: node.rack for node in told.nodes}


def assert_on_both(cluster, topic: str) -> None:
    racks = racks_of(cluster)
    for number, state in cluster.states(topic).items():
        assert {racks[id] for id in state.replicas} == set(RACKS), (number, state, racks)


def test_replicas_are_on_both_racks(make_cluster, topic):
    """Three are in the north: without racks, half of all would be there alone."""
    cluster = make_cluster(4, racks=("north", "south", "north", "north"), session_ms=6000)
    assert racks_of(cluster) == {1: "north", 2: "south", 3: "north", 4: "north"}
    cluster.create(topic, 9, replicas=2)
    assert_on_both(cluster, topic)
    admin = cluster.admin()
    admin.create_partitions([NewPartitions(topic, 15)])[topic].result(60)
    until(lambda: len(cluster.states(topic)) == 15, EVEN_SECONDS_MAX, "more partitions")
    assert_on_both(cluster, topic)
    cluster.end()


def test_a_rack_that_joins_is_used(make_cluster, topic):
    """The fourth broker is the first of the south: each partition gets a replica there."""
    cluster = make_cluster(3, racks=("north", "north", "north", "south"))
    cluster.create(topic, 3, replicas=2)
    new = cluster.add().id
    assert racks_of(cluster)[new] == "south"
    until(
        lambda: all(new in one.replicas for one in cluster.states(topic).values()),
        EVEN_SECONDS_MAX,
        "a replica of each partition in the south",
    )
    cluster.wait_until_healed(topic)
    cluster.end()
