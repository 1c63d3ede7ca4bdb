"""The load, the readers and the checker against a cluster of one: what they find fault with is the
cluster's, not theirs."""

from parts.checked import Checked


def test_a_broker_alone_is_killed_and_started(make_cluster, topic):
    cluster = make_cluster(1)
    with Checked(cluster, topic, replicas=1) as checked:
        cluster.kill(1)
        cluster.brokers[1].start()
        checked.goes_on()
        checked.verdict()
    cluster.end()
