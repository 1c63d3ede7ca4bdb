"""Clients with the settings that they have by themselves: they neither lose nor fail anything when a
leader dies, when all brokers are restarted in turn, and when the cluster grows and shrinks."""

from contextlib import contextmanager

import pytest

from parts.foreign import Foreign
from parts.growth import assert_has_its_share, tool_of, wait_until_even
from parts.history import History, violations
from parts.load import read_log

PARTITIONS = 6
ROUNDS = 3
CLIENTS = ["librdkafka", "java", "franz-go", "kafkajs"]
REPEATS = {"librdkafka", "kafkajs"}
"""Not idempotent by themselves: what they send again may be there twice, and out of order; a member
of a group that comes back reads again what it has not committed."""
REPEATED = ("times", "stands after", "went back", "is there now", "where")


@contextmanager
def under_load_of(client, cluster, topic):
    """Within it the client sends and reads; then all that it was told must be so."""
    cluster.create(topic, PARTITIONS)
    history = History()
    with Foreign(client, cluster.addresses, topic, PARTITIONS, history) as foreign:
        foreign.goes_on()
        yield foreign
        foreign.goes_on()
        foreign.finish()
    history.log = read_log(cluster.addresses, topic, PARTITIONS)
    found = violations(history)
    if client in REPEATS:
        found = [one for one in found if not any(word in one for word in REPEATED)]
    assert not found, found[:5]
    cluster.end()


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_it_goes_on_without_a_leader_and_through_restarts(cluster, topic, client):
    with under_load_of(client, cluster, topic) as foreign:
        leader = cluster.kill_leader(topic)
        foreign.goes_on()
        cluster.brokers[leader].start()
        cluster.wait_until_healed(topic)
        for id in list(cluster.brokers) * ROUNDS:
            cluster.stop(id)
            foreign.goes_on()
            cluster.brokers[id].start()
            cluster.wait_until_healed(topic)


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_it_goes_on_while_the_cluster_grows_and_shrinks(cluster, topic, client):
    """A fourth broker gets its share, the first gives all away and is stopped."""
    with under_load_of(client, cluster, topic) as foreign:
        new = cluster.add().id
        wait_until_even(cluster)
        assert_has_its_share(cluster, new)
        assert any(one.leader == new for one in cluster.states(topic).values())
        foreign.goes_on()
        said = tool_of(cluster).text("cluster", "drain", 1, "--wait")
        assert "broker 1 is empty" in said
        foreign.goes_on()
        cluster.stop(1)
