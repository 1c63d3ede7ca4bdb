"""A cluster grows and shrinks under a load: who joins gets its share, who shall go is emptied, who is
gone for too long is replaced; nothing acknowledged is lost or repeated meanwhile."""

import threading

import pytest
from harness.tool import run

from parts.checked import Checked
from parts.cluster import HEAL_SECONDS_MAX
from parts.growth import (
    EVEN_SECONDS_MAX,
    assert_has_its_share,
    shares,
    status,
    told,
    tool_of,
    wait_until_even,
)
from parts.waiting import until

MORE_PARTITIONS = 9
REPLACE_AFTER_MS = 4000


def logs_of(cluster, id: int, topic: str) -> list:
    return list((cluster.brokers[id].folder / "data").glob(f"{topic}-*"))


@pytest.mark.slow
def test_what_moves_never_has_less_than_all_its_replicas_in_sync(make_cluster, topic):
    """Whoever comes is in sync before anybody goes: as each broker tells it, all the time."""
    cluster = make_cluster(defaults={"cluster.balance.moves.max": 2})
    cluster.create(f"{topic}-more", MORE_PARTITIONS)
    seen: set[tuple[int, int]] = set()

    def look(id: int, ended: threading.Event) -> None:
        admin = cluster.admin(id)
        while not ended.is_set():
            told = admin.list_topics(timeout=30)
            for name in (topic, f"{topic}-more"):
                of = told.topics[name].partitions.values()
                seen.update((len(one.replicas), len(one.isrs)) for one in of)

    with Checked(cluster, topic) as checked:
        ended = threading.Event()
        lookers = [threading.Thread(target=look, args=(id, ended)) for id in cluster.brokers]
        for looker in lookers:
            looker.start()
        try:
            cluster.add()
            wait_until_even(cluster)
            tool_of(cluster).text("cluster", "drain", 1, "--wait")
        finally:
            ended.set()
            for looker in lookers:
                looker.join()
        checked.goes_on()
        checked.verdict()
    assert min(in_sync for _, in_sync in seen) == 3, seen
    assert max(replicas for replicas, _ in seen) == 4, "nobody has seen a move"
    cluster.end()


@pytest.mark.sanitized
def test_a_fourth_broker_gets_its_share(cluster, topic):
    cluster.create(f"{topic}-more", MORE_PARTITIONS)
    with Checked(cluster, topic) as checked:
        new = cluster.add().id
        wait_until_even(cluster)
        assert_has_its_share(cluster, new)
        for name, partitions in ((topic, 3), (f"{topic}-more", MORE_PARTITIONS)):
            states = cluster.states(name).values()
            on_new = sum(new in one.replicas for one in states)
            assert abs(on_new - partitions * 3 / 4) < 1, f"{name}: {states}"
        assert logs_of(cluster, new, topic)
        checked.goes_on()
        print(f"nothing was acknowledged for {checked.load.longest_gap():.2f} s")
        checked.verdict()
    cluster.end()


def test_growth_goes_on_when_the_controller_is_killed(make_cluster, topic):
    cluster = make_cluster(defaults={"cluster.balance.moves.max": 1})
    cluster.create(f"{topic}-more", MORE_PARTITIONS)
    with Checked(cluster, topic) as checked:
        new = cluster.add().id
        until(lambda: status(cluster)["moving"], EVEN_SECONDS_MAX, "a partition that moves")
        controller = cluster.controller()
        cluster.kill(controller)
        until(lambda: cluster.controller() != controller, HEAL_SECONDS_MAX, "another controller")
        cluster.brokers[controller].start()
        wait_until_even(cluster)
        assert_has_its_share(cluster, new)
        checked.goes_on()
        checked.verdict()
    cluster.end()


def test_what_is_paused_moves_when_it_goes_on(cluster, topic):
    cluster.create(topic, MORE_PARTITIONS)
    assert told(cluster, "balance", "--pause")["balance"] == "paused"
    new = cluster.add().id
    controller = cluster.brokers[cluster.controller()]
    controller.wait_for_log_line("a broker is there", f"broker={new}")

    def is_planned() -> dict | None:
        now = status(cluster)
        return now if now["left"] > 0 else None

    now = until(is_planned, EVEN_SECONDS_MAX, "a plan for who has joined")
    assert now["balance"] == "paused" and not now["moving"], now
    assert shares(cluster)[new]["replicas"] == 0
    tool_of(cluster).text("cluster", "balance", "--resume")
    wait_until_even(cluster)
    assert shares(cluster)[new]["replicas"] > 0
    cluster.end()


@pytest.mark.sanitized
def test_the_first_broker_is_drained_and_stopped(make_cluster, topic):
    cluster = make_cluster(4)
    cluster.create(f"{topic}-more", MORE_PARTITIONS)
    with Checked(cluster, topic) as checked:
        said = tool_of(cluster).text("cluster", "drain", 1, "--wait")
        assert "broker 1 is empty: it can be stopped" in said
        for name in (topic, f"{topic}-more"):
            assert all(1 not in one.replicas for one in cluster.states(name).values())
        until(lambda: not logs_of(cluster, 1, topic), HEAL_SECONDS_MAX, "the logs of broker 1 are erased")
        wait_until_even(cluster)
        cluster.create(f"{topic}-made-meanwhile", 4)
        assert shares(cluster)[1]["replicas"] == 0, "a drained broker gets nothing new"
        cluster.stop(1)
        checked.goes_on()
        print(f"nothing was acknowledged for {checked.load.longest_gap():.2f} s")
        checked.verdict()
    cluster.end()


def test_a_drain_that_is_impossible_says_so(cluster, topic):
    cluster.create(topic, 3)
    refused = run("-b", cluster.brokers[2].address, "cluster", "drain", 1, "--wait")
    assert refused.code == 1
    assert "too few" in refused.errors and "drain 1 --cancel" in refused.errors, refused.errors
    until(lambda: shares(cluster)[1]["leaders"] == 0, HEAL_SECONDS_MAX, "broker 1 leads nothing")
    states = cluster.states(topic).values()
    assert all(len(one.in_sync) == 3 for one in states), "and no replica less than before"
    tool_of(cluster).text("cluster", "drain", 1, "--cancel")
    until(lambda: not shares(cluster)[1]["drained"], HEAL_SECONDS_MAX, "broker 1 keeps what it has")
    nobody = run("-b", cluster.brokers[2].address, "cluster", "drain", 9)
    assert nobody.code == 1 and "there is no broker 9; there are 1, 2, 3" in nobody.errors
    cluster.end()


def test_a_broker_that_is_gone_for_too_long_is_replaced(make_cluster, topic):
    settings = {"cluster.balance.replace.after.ms": REPLACE_AFTER_MS}
    cluster = make_cluster(4, defaults=settings)
    with Checked(cluster, topic) as checked:
        gone = cluster.follower(topic)
        cluster.kill(gone)

        def replaced() -> bool:
            states = cluster.states(topic).values()
            return bool(states) and all(
                gone not in one.replicas and len(one.in_sync) == 3 for one in states
            )

        until(replaced, EVEN_SECONDS_MAX, f"broker {gone} is replaced")
        checked.goes_on()
        had = {path.name for path in logs_of(cluster, gone, topic)}
        assert had, "its logs are still there"
        cluster.brokers[gone].start()
        cluster.brokers[gone].wait_for_log_line("its log is erased")
        wait_until_even(cluster)
        assert shares(cluster)[gone]["replicas"] > 0, "it gets its share, as whoever joins"
        checked.goes_on()
        checked.verdict()
    cluster.end()
