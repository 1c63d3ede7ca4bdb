"""Brokers and ZooKeeper fail under a load: nothing acknowledged is lost or repeated, no read goes back
in time, and the cluster heals by itself."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.wire import RawConnection

from parts.checked import PARTITIONS, Checked
from parts.cluster import HEAL_SECONDS_MAX, SESSION_MS, SLOWDOWN
from parts.history import History, violations
from parts.load import Load, read_log
from parts.waiting import pass_time, until

NOT_LEADER = 6
ZOOKEEPER_AWAY_SECONDS = 6 * SESSION_MS / 1000
DEFAULT_SESSION_MS = 6000
GAP_SECONDS_MAX = 12 * SLOWDOWN
"""Where leaders move: what a busy machine may add. `tests/bench` measures."""
TOLD_SECONDS_MAX = 3
"""From an acknowledgement until the client has told us, on a busy machine."""
OUT_SECONDS_MAX = 60 * SLOWDOWN


@pytest.mark.sanitized
def test_the_leader_is_killed(cluster, topic):
    with Checked(cluster, topic) as checked:
        leader = cluster.kill_leader(topic)
        checked.goes_on()
        gap = checked.load.longest_gap()
        print(f"nothing was acknowledged for {gap:.2f} s, of a session of {SESSION_MS / 1000} s")
        assert gap < SESSION_MS / 1000 + GAP_SECONDS_MAX
        cluster.brokers[leader].start()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


def test_a_follower_is_killed(cluster, topic):
    with Checked(cluster, topic) as checked:
        follower = cluster.follower(topic)
        cluster.kill(follower)
        checked.goes_on()
        cluster.wait_for_in_sync(topic, 0, 2)
        cluster.brokers[follower].start()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


def test_the_controller_is_killed(cluster, topic):
    with Checked(cluster, topic) as checked:
        controller = cluster.controller()
        cluster.kill(controller)
        until(lambda: cluster.controller() != controller, HEAL_SECONDS_MAX, "another controller")
        cluster.create(f"{topic}-made-meanwhile", 1, replicas=2)
        checked.goes_on()
        cluster.brokers[controller].start()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


def test_two_of_three_are_killed(cluster, topic):
    """One alone may not acknowledge; what it refuses goes through once there is a second."""
    with Checked(cluster, topic) as checked:
        gone = [id for id in cluster.brokers if id != cluster.leader(topic)]
        cluster.kill(*gone)
        cluster.brokers[gone[0]].start()
        checked.goes_on()
        cluster.brokers[gone[1]].start()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


@pytest.mark.sanitized
def test_a_leader_that_slept_past_its_session_neither_acknowledges_nor_serves(cluster, topic):
    with Checked(cluster, topic) as checked:
        zombie = cluster.leader(topic)
        partition = next(p for p, state in cluster.states(topic).items() if state.leader == zombie)
        cluster.brokers[zombie].pause()
        cluster.leader(topic, partition, other_than=zombie)
        checked.goes_on()
        cluster.brokers[zombie].go_on()
        with RawConnection(cluster.brokers[zombie].address) as direct:
            error, records = direct.fetch(topic, partition)
        assert (error, records) == (NOT_LEADER, b"")
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


@pytest.mark.parametrize(
    "session_ms, seconds",
    [
        (SESSION_MS, ZOOKEEPER_AWAY_SECONDS),
        pytest.param(DEFAULT_SESSION_MS, 30, marks=pytest.mark.slow),
    ],
)
def test_zookeeper_is_away(make_cluster, topic, session_ms, seconds):
    """Data flows as long as the leases last, which is not longer than a session, and then not at all;
    all goes on by itself when ZooKeeper is back."""
    cluster = make_cluster(session_ms=session_ms)
    with Checked(cluster, topic) as checked:
        cluster.zookeepers[0].kill()
        began = time.monotonic()
        checked.load.wait_for_acknowledged(50, seconds=session_ms / 1000 + TOLD_SECONDS_MAX)
        pass_time(seconds - (time.monotonic() - began))
        flowed = checked.load.last_acknowledged() - began
        print(f"data flowed for {flowed:.2f} s, of a session of {session_ms / 1000} s")
        assert flowed <= session_ms / 1000 + TOLD_SECONDS_MAX
        cluster.zookeepers[0].start()
        checked.goes_on()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


def test_the_leader_of_zookeepers_is_killed(make_cluster, topic):
    """Of an ensemble of three: sessions outlive it, and nothing stops for as long as a lease lasts."""
    cluster = make_cluster(zookeepers=3, session_ms=10_000)
    with Checked(cluster, topic) as checked:
        leading = next(one for one in cluster.zookeepers if one.leads())
        leading.kill()
        checked.goes_on()
        until(lambda: any(one.leads() for one in cluster.zookeepers if one.process), 60, "another")
        pass_time(3)
        checked.goes_on()
        assert checked.load.longest_gap() < GAP_SECONDS_MAX
        for broker in cluster.brokers.values():
            assert "the session is over" not in broker.log_text()
        leading.start()
        cluster.create(f"{topic}-made-meanwhile", 1)
        checked.verdict()
    cluster.end()


@pytest.mark.parametrize(
    "rounds",
    [pytest.param(1, marks=pytest.mark.sanitized), pytest.param(3, marks=pytest.mark.slow)],
)
def test_all_brokers_are_restarted_in_turn(cluster, topic, rounds):
    with Checked(cluster, topic) as checked:
        for id in list(cluster.brokers) * rounds:
            cluster.stop(id)
            checked.goes_on(50)
            cluster.brokers[id].start()
            cluster.wait_until_healed(topic)
        checked.goes_on()
        gap = checked.load.longest_gap()
        print(f"nothing was acknowledged for {gap:.2f} s")
        assert gap < GAP_SECONDS_MAX
        checked.verdict()
    cluster.end()


@pytest.mark.sanitized
def test_a_broker_comes_back_with_an_empty_disk(cluster, topic):
    """It gets all that it had; then it is as good as any, alone with another one."""
    with Checked(cluster, topic) as checked:
        wiped = cluster.follower(topic)
        cluster.kill(wiped)
        cluster.brokers[wiped].wipe()
        cluster.brokers[wiped].start()
        cluster.wait_until_healed(topic)
        other = cluster.leader(topic)
        cluster.kill(other)
        checked.goes_on()
        cluster.brokers[other].start()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


@pytest.mark.sanitized
def test_a_topic_is_deleted_while_a_replica_is_down(cluster, topic):
    cluster.create(topic, 3)
    down = cluster.follower(topic)
    data = cluster.brokers[down].folder / "data"
    cluster.kill(down)
    assert list(data.glob(f"{topic}-*"))
    cluster.delete(topic)
    cluster.brokers[down].start()
    until(lambda: not list(data.glob(f"{topic}-*")), HEAL_SECONDS_MAX, "its logs are removed")
    with Checked(cluster, topic) as checked:  # a new one of the name begins anew
        checked.goes_on()
        checked.verdict()
    cluster.end()


def test_acks_1_may_lose_what_the_killed_leader_had_alone(make_cluster, topic):
    """The window that the documentation names: what a leader acknowledged and no follower had fetched
    when it died is lost, and nothing else. Here the followers are held up, so that there is some."""
    cluster = make_cluster(session_ms=6000)
    cluster.create(topic, 1)
    history = History()
    with Load(cluster.addresses, topic, history, acks="1") as load:
        load.wait_for_acknowledged(500)
        leader = cluster.leader(topic)
        followers = [one for id, one in cluster.brokers.items() if id != leader]
        for follower in followers:
            follower.pause()
        load.wait_for_acknowledged(200)
        cluster.kill(leader)
        for follower in followers:
            follower.go_on()
        cluster.leader(topic, other_than=leader)
        load.wait_for_acknowledged(300)
        load.finish()
    cluster.brokers[leader].start()
    cluster.wait_until_healed(topic)
    history.log = read_log(cluster.addresses, topic, 1)
    at = dict(history.log[0])
    # Where offsets are given once more, the new leader began.
    given = [one.offset for one in history.acknowledged]
    led_anew = next(n for n in range(1, len(given)) if given[n] <= max(given[:n]))
    lost = [n for n, one in enumerate(history.acknowledged) if at.get(one.offset) != one.number]
    print(f"{len(lost)} of {len(given)} acknowledged messages are lost")
    assert len(lost) >= 100, "those that were acknowledged while the followers were held up"
    assert max(lost) < led_anew, "all that the new leader acknowledged is there"
    assert min(given[n] for n in lost) >= min(given[led_anew:]), "what others had is there"
    assert not [found for found in violations(history) if "never sent" in found]
    cluster.end()


@pytest.mark.parametrize("moves", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_L03_leaders_move_without_a_message(cluster, topic, moves):
    """KAFKA-10706: elections without writes leave no epochs behind that conflict."""
    cluster.create(topic, PARTITIONS)
    for _ in range(moves):
        leader = cluster.leader(topic)
        cluster.stop(leader)
        cluster.leader(topic, other_than=leader)
        cluster.brokers[leader].start()
        cluster.wait_until_healed(topic)
    with Checked(cluster, topic, is_made=True) as checked:
        checked.goes_on()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


def test_L07_a_broker_that_leaves_is_not_in_sync_and_does_not_lead(cluster, topic):
    """KAFKA-15390, KAFKA-13916: once it is out, as the others tell it, it stays out until it is back."""
    with Checked(cluster, topic) as checked:
        leaving = cluster.leader(topic)
        others = next(id for id in cluster.brokers if id != leaving)
        with ThreadPoolExecutor(1) as pool:
            stopping = pool.submit(cluster.stop, leaving)
            deadline = time.monotonic() + OUT_SECONDS_MAX
            out = False
            while not (stopping.done() and out):
                told = cluster.metadata(topic, id=others)
                partitions = told.topics[topic].partitions.values()
                is_out = all(leaving not in (one.leader, *one.isrs) for one in partitions)
                assert is_out or not out, "it came back while it was leaving"
                assert time.monotonic() < deadline, "it is not out"
                out = is_out
            stopping.result()
        checked.goes_on()
        cluster.brokers[leaving].start()
        cluster.wait_until_healed(topic)
        checked.verdict()
    cluster.end()


def test_L05_a_follower_that_lost_all_leads_at_once(cluster, topic):
    """KAFKA-9491: what the leader trimmed beyond a follower's end is no reason for readers to be told
    that their offsets are out of range."""
    cluster.create(topic, 1)
    history = History()
    with Load(cluster.addresses, topic, history) as load:
        load.wait_for_acknowledged(200)
        follower = cluster.follower(topic)
        cluster.kill(follower)
        load.wait_for_acknowledged(200)
        load.finish()
    cluster.trim(topic, 0)
    cluster.brokers[follower].start()
    cluster.wait_until_healed(topic)
    cluster.kill(*(id for id in cluster.brokers if id != follower))
    for id in cluster.brokers:
        if id != follower:
            cluster.brokers[id].start()
    end = history.acknowledged[-1].offset + 1
    assert cluster.bounds(topic, 0) == (end, end)
    more = History()
    with Load(cluster.addresses, topic, more) as load:
        load.wait_for_acknowledged(50)
        load.finish()
    assert cluster.bounds(topic, 0) == (end, end + len(more.sent))
    cluster.end()
