"""Clients that are not librdkafka, with the settings that they have by themselves: they neither lose
nor fail anything when a leader dies and when all brokers are restarted in turn."""

import pytest

from parts.foreign import Foreign
from parts.history import History, violations
from parts.load import read_log

PARTITIONS = 3
REPEATS = {"kafkajs"}
"""Not idempotent by themselves: what they send again may be there twice, and out of order; a member
of a group that comes back reads again what it has not committed."""
REPEATED = ("times", "stands after", "went back", "is there now", "where")


@pytest.mark.slow
@pytest.mark.parametrize("client", ["java", "franz-go", "kafkajs"])
def test_it_goes_on(cluster, topic, client):
    cluster.create(topic, PARTITIONS)
    history = History()
    with Foreign(client, cluster.addresses, topic, PARTITIONS, history) as foreign:
        foreign.goes_on()
        leader = cluster.kill_leader(topic)
        foreign.goes_on()
        cluster.brokers[leader].start()
        cluster.wait_until_healed(topic)
        for id in cluster.brokers:
            cluster.stop(id)
            foreign.goes_on()
            cluster.brokers[id].start()
            cluster.wait_until_healed(topic)
        foreign.goes_on()
        foreign.finish()
    history.log = read_log(cluster.addresses, topic, PARTITIONS)
    found = violations(history)
    if client in REPEATS:
        found = [one for one in found if not any(word in one for word in REPEATED)]
    assert not found, found[:5]
    cluster.end()
