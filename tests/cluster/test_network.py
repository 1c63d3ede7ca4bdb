"""Brokers that cannot reach each other, ZooKeeper or their clients, in both directions or in one; and
links that lose and delay. Under the checked load, as in test_faults."""

from dataclasses import dataclass

import pytest
from harness.wire import RawConnection

from parts.checked import Checked
from parts.cluster import SESSION_MS
from parts.network import CLIENTS, ZOOKEEPER, NetworkCluster, skip_unless_possible
from parts.proxy import Proxies
from parts.waiting import pass_time, until

NOT_LEADER = 6
CUT_SECONDS = SESSION_MS / 1000 + 3
LOST_PERCENT = 10
LATE_SECONDS = 0.05
LOST_SHARE = 0.02


@pytest.fixture
def cluster(tmp_path):
    """Three brokers, each in a namespace of its own."""
    skip_unless_possible()
    made = NetworkCluster(tmp_path / "cluster")
    try:
        yield made.start()
    finally:
        made.close()
    made.assert_nothing_caught()


@dataclass(frozen=True)
class Cut:
    name: str
    brokers: bool = False
    zookeeper: bool = False
    clients: bool = False
    arriving: bool = True
    leaving: bool = True

    @property
    def others_lead(self) -> bool:
        """It loses its session, and others go on without it."""
        return self.zookeeper

    def apply(self, cluster: NetworkCluster, id: int) -> None:
        whom = cluster.others(id) if self.brokers else []
        whom += [ZOOKEEPER] if self.zookeeper else []
        whom += [CLIENTS] if self.clients else []
        cluster.network.cut(f"b{id}", whom, arriving=self.arriving, leaving=self.leaving)


slow = pytest.mark.slow
EVERYTHING = {"brokers": True, "zookeeper": True, "clients": True}
CUTS = [
    Cut("all-but-clients", brokers=True, zookeeper=True),
    pytest.param(Cut("the-others", brokers=True), marks=slow),
    pytest.param(Cut("zookeeper", zookeeper=True), marks=slow),
    pytest.param(Cut("clients", clients=True), marks=slow),
    pytest.param(Cut("all", **EVERYTHING), marks=slow),
    Cut("all-that-it-sends", **EVERYTHING, arriving=False),
    pytest.param(Cut("all-that-it-is-sent", **EVERYTHING, leaving=False), marks=slow),
    pytest.param(Cut("what-it-sends-the-others", brokers=True, arriving=False), marks=slow),
    pytest.param(Cut("what-the-others-send-it", brokers=True, leaving=False), marks=slow),
]


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.name)
def test_a_leader_is_cut_off_from(cluster, topic, cut):
    """It neither acknowledges nor serves once others may lead; when the cut is mended all goes on."""
    with Checked(cluster, topic) as checked:
        victim = cluster.leader(topic)
        cut.apply(cluster, victim)
        if cut.others_lead:
            cluster.leader(topic, other_than=victim)
            checked.goes_on()
            if not cut.clients:
                with RawConnection(cluster.brokers[victim].address) as direct:
                    assert direct.fetch(topic, 0) == (NOT_LEADER, b"")
        else:
            pass_time(CUT_SECONDS)
        cluster.network.heal()
        checked.goes_on()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


@pytest.mark.slow
def test_a_leader_that_is_cut_off_comes_and_goes(cluster, topic):
    """A link that works by halves: cut and mended again and again, around the time of a session."""
    with Checked(cluster, topic) as checked:
        for seconds in (0.5, 1.0, 1.5, 2.0, 2.5):
            victim = cluster.leader(topic)
            cluster.network.cut(f"b{victim}", [*cluster.others(victim), ZOOKEEPER])
            pass_time(seconds)
            cluster.network.heal()
            pass_time(0.5)
        checked.goes_on()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


@pytest.mark.sanitized
def test_packets_are_lost(cluster, topic):
    """A tenth of all between a leader and everybody."""
    with Checked(cluster, topic) as checked:
        victim = cluster.leader(topic)
        everybody = [*cluster.others(victim), ZOOKEEPER, CLIENTS]
        cluster.network.cut(f"b{victim}", everybody, percent=LOST_PERCENT)
        checked.goes_on(100)
        pass_time(CUT_SECONDS)
        cluster.network.heal()
        checked.goes_on()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


@pytest.fixture
def proxies():
    made = Proxies(3)
    yield made
    made.close()


def test_links_are_late(make_cluster, topic, proxies):
    """Everything between brokers and clients takes 50 ms more, some of it five times as long."""
    cluster = make_cluster(own=proxies.own)
    with Checked(cluster, topic) as checked:
        for proxy in proxies.of.values():
            proxy.delay, proxy.loss = LATE_SECONDS, LOST_SHARE
        checked.goes_on()
        leader = cluster.kill_leader(topic)
        checked.goes_on()
        cluster.brokers[leader].start()
        cluster.wait_until_healed(topic)
        checked.verdict()
    for proxy in proxies.of.values():
        proxy.delay = proxy.loss = 0.0
    cluster.end()


def test_L09_a_fetch_of_an_earlier_life_makes_nobody_in_sync(make_cluster, topic):
    """KAFKA-15221: a follower dies and comes back with an empty disk; a fetch that it sent before
    arrives only then, and says that it has everything."""
    proxies = Proxies(2)
    cluster = make_cluster(2, own=proxies.own, defaults={"min.insync.replicas": 1})
    try:
        with Checked(cluster, topic, replicas=2) as checked:
            follower = cluster.follower(topic)
            proxy = proxies.of[cluster.leader(topic)]
            proxy.hold_peers()
            until(proxy.holds_something, 30, "a fetch of the follower is held")
            cluster.kill(follower)
            cluster.brokers[follower].wipe()
            cluster.brokers[follower].start()
            cluster.wait_for_in_sync(topic, 0, 1)
            proxy.let_go(oldest_only=True)
            for _ in range(20):
                pass_time(0.1)
                assert follower not in cluster.states(topic)[0].in_sync
            checked.goes_on()
            proxy.let_go()
            cluster.wait_until_healed(topic)
            checked.verdict()
        cluster.end()
    finally:
        proxies.close()
