"""What members do wrong, and what goes wrong with members: requests that no client library sends, and
faults that other brokers had, by their number."""

import threading

import confluent_kafka as ck
import pytest

from harness import confluent, groups, kafka_tools
from harness.groups import NONE, Joined, ask
from harness.members import FAST, PARTITIONS, SESSION_MS
from harness.records import Record
from harness.wire import RawConnection

TOPIC = "faults"


@pytest.fixture(scope="module")
def strict_broker(broker_kind, tmp_path_factory):
    settings = {
        **FAST,
        "group.consumer.session.timeout.ms": 4 * SESSION_MS,  # nobody is put out for being late
        "group.max.size": 5,
        "group.consumer.max.size": 5,
        "offset.metadata.max.bytes": 100,
    }
    broker = broker_kind(tmp_path_factory.mktemp("strict"), settings)
    try:
        broker.start()
        confluent.create_topic(broker.address, TOPIC, PARTITIONS)
        yield broker
        broker.end()
    finally:
        broker.close()


@pytest.fixture
def connection(strict_broker, group):
    with RawConnection(strict_broker.address) as made:
        for name in {group, "workers", "g" * 32767}:
            groups.offsets_when_loaded(made, name, TOPIC, [0])
        yield made


@pytest.fixture
def group(request) -> str:
    return request.node.name


def enter(connection: RawConnection, group: str, **options) -> Joined:
    """As a client of today: first without an id, then with the one that is given."""
    first = ask(connection, groups.join(group, **options))
    if first.error != groups.MEMBER_ID_REQUIRED:
        return first
    return ask(connection, groups.join(group, first.member, **options))


def settle(connection: RawConnection, group: str, joined: Joined, instance=None) -> None:
    """The only member gives itself everything."""
    assert joined.leads
    own = [(joined.member, groups.assignment(TOPIC, range(PARTITIONS)))]
    error, given = ask(
        connection, groups.sync(group, joined.generation, joined.member, own, instance)
    )
    assert error == NONE
    assert groups.read_assignment(given) == list(range(PARTITIONS))


# --- Wrong requests ---


def test_an_unknown_member_is_told_so(connection, group):
    settle(connection, group, enter(connection, group))
    assert ask(connection, groups.heartbeat(group, 1, "nobody")) == groups.UNKNOWN_MEMBER_ID
    assert ask(connection, groups.sync(group, 1, "nobody"))[0] == groups.UNKNOWN_MEMBER_ID
    assert ask(connection, groups.leave(group, ("nobody", None))) == [groups.UNKNOWN_MEMBER_ID]
    assert ask(connection, groups.join(group, "nobody")).error == groups.UNKNOWN_MEMBER_ID
    committed = ask(connection, groups.commit(group, TOPIC, {0: 1}, generation=1, member="nobody"))
    assert committed == {0: groups.UNKNOWN_MEMBER_ID}
    beat = ask(connection, groups.consumer_heartbeat("none-yet", "nobody", 5))
    assert beat.error in (groups.UNKNOWN_MEMBER_ID, groups.GROUP_ID_NOT_FOUND)


def test_a_stale_generation_is_told_so(connection, group):
    joined = enter(connection, group)
    settle(connection, group, joined)
    again = ask(connection, groups.join(group, joined.member))
    assert again.generation > joined.generation
    settle(connection, group, again)
    old = (joined.generation, joined.member)
    assert ask(connection, groups.heartbeat(group, *old)) == groups.ILLEGAL_GENERATION
    assert ask(connection, groups.sync(group, *old))[0] == groups.ILLEGAL_GENERATION
    committed = ask(
        connection, groups.commit(group, TOPIC, {0: 1}, generation=old[0], member=old[1])
    )
    assert committed == {0: groups.ILLEGAL_GENERATION}
    assert ask(connection, groups.heartbeat(group, again.generation, again.member)) == NONE


def test_a_static_member_that_is_replaced_is_fenced(connection, group):
    joined = enter(connection, group, instance="one")
    settle(connection, group, joined, "one")
    again = ask(connection, groups.join(group, instance="one"))
    assert again.error == NONE
    assert again.member != joined.member
    old = (joined.generation, joined.member, "one")
    assert ask(connection, groups.heartbeat(group, *old)) == groups.FENCED_INSTANCE_ID
    assert ask(connection, groups.sync(group, *old[:2], (), "one"))[0] == groups.FENCED_INSTANCE_ID
    committed = ask(
        connection,
        groups.commit(
            group, TOPIC, {0: 1}, generation=joined.generation, member=joined.member, instance="one"
        ),
    )
    assert committed == {0: groups.FENCED_INSTANCE_ID}


def test_an_assignment_that_nobody_can_read_reaches_its_member_as_it_is(
    strict_broker, connection, group
):
    """A group of another protocol may write what it likes; and it does no harm to those who look."""
    joined = enter(connection, group)
    for garbage in (b"", b"\0", b"\x7f\xff" + b"\xff" * 50, bytes(1 << 16)):
        own = [(joined.member, garbage)]
        error, given = ask(connection, groups.sync(group, joined.generation, joined.member, own))
        assert (error, given) == (NONE, garbage)
        assert ask(connection, groups.describe(group)) == (NONE, "Stable", "consumer", 1)
        joined = ask(connection, groups.join(group, joined.member))
    strict_broker.assert_running()


def test_a_subscription_that_nobody_can_read_is_let_in(connection, group):
    for garbage in (b"", b"\0", b"\0\0\x7f\xff\xff\xff", b"\xff" * 100):
        joined = enter(connection, group, protocols=[("range", garbage)])
        assert joined.error == NONE
        assert joined.members[0][2] == garbage
        assert ask(connection, groups.leave(group, (joined.member, None))) == [NONE]


def test_a_group_id_that_is_empty_or_long(strict_broker, connection):
    assert ask(connection, groups.join("")).error == groups.INVALID_GROUP_ID
    assert ask(connection, groups.heartbeat("", 1, "m")) == groups.INVALID_GROUP_ID
    assert ask(connection, groups.consumer_heartbeat("", "m", 0, topics=[TOPIC])).error == (
        groups.INVALID_REQUEST
    )
    longest = "g" * 32767  # the most that a text has room for
    joined = enter(connection, longest)
    assert joined.error in (NONE, groups.INVALID_GROUP_ID)
    if joined.error == NONE:
        settle(connection, longest, joined)
        assert ask(connection, groups.commit(longest, TOPIC, {0: 7})) != {}
        assert ask(connection, groups.heartbeat(longest, joined.generation, joined.member)) == NONE
        assert ask(connection, groups.leave(longest, (joined.member, None))) == [NONE]
        assert ask(connection, groups.delete(longest)) == NONE
    huge = "g" * (64 << 10)  # only a compact text has room for it
    beat = groups.consumer_heartbeat(huge, "m", 0, topics=[TOPIC], rebalance_ms=1000)
    with RawConnection(strict_broker.address) as other:
        other.send(beat.frame(1))
        assert other.closed_by_broker()
    assert ask(connection, groups.heartbeat("", 1, "m")) == groups.INVALID_GROUP_ID
    strict_broker.assert_running()


def test_a_commit_for_an_unknown_topic(connection, group):
    unknown = 3
    assert ask(connection, groups.commit(group, "no-such-topic", {0: 1})) == {0: unknown}
    assert ask(connection, groups.commit(group, TOPIC, {0: 1, 99: 1})) == {0: NONE, 99: unknown}
    _, found = ask(connection, groups.offsets(group, TOPIC, [0, 99]))
    assert found == {0: (1, NONE), 99: (-1, NONE)}


def test_metadata_over_the_limit(connection, group):
    fits, too_long = "m" * 100, "m" * 101
    assert ask(connection, groups.commit(group, TOPIC, {0: 1}, metadata=fits)) == {0: NONE}
    refused = ask(connection, groups.commit(group, TOPIC, {0: 2}, metadata=too_long))
    assert refused == {0: groups.OFFSET_METADATA_TOO_LARGE}
    assert ask(connection, groups.offsets(group, TOPIC, [0]))[1] == {0: (1, NONE)}


def test_a_session_out_of_bounds(connection, group):
    for session in (1, 999, 1_800_001):
        answer = ask(connection, groups.join(group, session_ms=session))
        assert answer.error == groups.INVALID_SESSION_TIMEOUT


def test_protocols_that_do_not_fit(connection, group):
    joined = enter(connection, group)
    settle(connection, group, joined)
    for options in (
        {"protocols": [("other", b"")]},
        {"protocols": []},
        {"protocol_type": "connect"},
    ):
        answer = ask(connection, groups.join(group, **options))
        assert answer.error == groups.INCONSISTENT_GROUP_PROTOCOL
    assert ask(connection, groups.heartbeat(group, joined.generation, joined.member)) == NONE


def test_a_member_that_goes_during_a_join_is_not_waited_for(strict_broker, connection, group):
    """Its request is dropped with its connection; its session ends by time."""
    stays = enter(connection, group, session_ms=20_000)
    settle(connection, group, stays)
    with RawConnection(strict_broker.address) as other:
        first = ask(other, groups.join(group, session_ms=1000))
        other.send(groups.join(group, first.member, session_ms=1000).frame(1))
        beat = groups.heartbeat(group, stays.generation, stays.member)
        while ask(connection, beat) == NONE:
            pass
    again = ask(connection, groups.join(group, stays.member, session_ms=20_000, rebalance_ms=5000))
    if len(again.members) > 1:  # it was still in the generation, for a second
        while ask(connection, groups.heartbeat(group, again.generation, again.member)) == NONE:
            pass
        again = ask(connection, groups.join(group, stays.member, session_ms=20_000))
    assert [member for member, _, _ in again.members] == [stays.member]


# --- Faults by number ---


def test_G01_a_leader_that_never_syncs(strict_broker, connection, group):
    """It goes on with heartbeats, and is put out after its rebalance time; the others go on."""
    times = {"session_ms": 20_000, "rebalance_ms": 4000}
    leader = enter(connection, group, **times)
    with RawConnection(strict_broker.address) as other:
        first = ask(other, groups.join(group, **times))
        other.send(groups.join(group, first.member, **times).frame(1))
        beat = groups.heartbeat(group, leader.generation, leader.member)
        while ask(connection, beat) == NONE:  # the other's request may be the later one to arrive
            pass
        leader = ask(connection, groups.join(group, leader.member, **times))
        follower = groups.join(group, first.member).answer(other.receive_frame())
        assert leader.leads and len(leader.members) == 2
        waits = groups.sync(group, follower.generation, follower.member)
        other.send(waits.frame(2))
        stop = threading.Event()
        with RawConnection(strict_broker.address) as third:

            def beats() -> None:
                while not stop.wait(0.2):
                    ask(third, groups.heartbeat(group, leader.generation, leader.member))

            heart = threading.Thread(target=beats)
            heart.start()
            try:
                error, _ = waits.answer(other.receive_frame())
            finally:
                stop.set()
                heart.join()
        assert error in (groups.REBALANCE_IN_PROGRESS, groups.UNKNOWN_MEMBER_ID)
        alone = enter(other, group, **times)
        settle(other, group, alone)
        assert len(alone.members) == 1


def test_G03_a_group_is_never_larger_than_its_bound(strict_broker, group):
    """50 at once where 5 may be."""
    count = 50
    answers: list[Joined] = []

    def one() -> None:
        with RawConnection(strict_broker.address) as own:
            options = {"rebalance_ms": 1500, "session_ms": 10_000}
            answers.append(enter(own, group, **options))

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.error for one in answers} <= {
        NONE, groups.GROUP_MAX_SIZE_REACHED, groups.REBALANCE_IN_PROGRESS, groups.UNKNOWN_MEMBER_ID
    }  # fmt: skip
    assert max(len(one.members) for one in answers) <= 5
    assert sum(one.error == groups.GROUP_MAX_SIZE_REACHED for one in answers) >= count - 10
    with RawConnection(strict_broker.address) as own:
        assert ask(own, groups.describe(group))[3] <= 5


@pytest.mark.fault
def test_G05_offsets_are_kept_across_a_restart(own_fast_broker):
    """However the retention was said: expiry is not counted from the wrong time."""
    broker = own_fast_broker
    confluent.create_topic(broker.address, TOPIC, PARTITIONS)
    with RawConnection(broker.address) as connection:
        groups.offsets_when_loaded(connection, "kept", TOPIC, [0])
        assert ask(connection, groups.commit("kept", TOPIC, {0: 3})) == {0: NONE}
        for version in (2, 3, 4):
            question = groups.old_commit("kept", TOPIC, {version - 1: 3}, 60_000, version)
            assert ask(connection, question) == {version - 1: NONE}
    broker.kill()
    broker.start()
    with RawConnection(broker.address) as connection:
        found = groups.offsets_when_loaded(connection, "kept", TOPIC, range(PARTITIONS))
    assert found == {number: (3, NONE) for number in range(PARTITIONS)}


@pytest.mark.fault
def test_G09_no_offsets_are_told_before_they_are_loaded(own_fast_broker):
    """Asked again and again while the coordinator comes back: never "none"."""
    broker = own_fast_broker
    confluent.create_topic(broker.address, TOPIC, PARTITIONS)
    with RawConnection(broker.address) as connection:
        groups.offsets_when_loaded(connection, "loaded", TOPIC, [0])
        assert ask(connection, groups.commit("loaded", TOPIC, {0: 11, 1: 12})) == {0: NONE, 1: NONE}
    for _ in range(3):
        broker.kill()
        broker.start_early()
        with RawConnection(broker.address) as connection:
            found = groups.offsets_when_loaded(connection, "loaded", TOPIC, [0, 1])
        assert found[0] == (11, NONE)
        assert found[1] == (12, NONE)


def test_G11_commits_during_a_rebalance(strict_broker, connection, group):
    """Taken from the present generation until the next has begun; and nobody is put out for one."""
    first = enter(connection, group)
    settle(connection, group, first)
    with RawConnection(strict_broker.address) as other:
        newcomer = ask(other, groups.join(group))
        other.send(groups.join(group, newcomer.member).frame(1))
        while ask(connection, groups.heartbeat(group, first.generation, first.member)) == NONE:
            pass

        def commit(generation: int) -> int:
            question = groups.commit(
                group, TOPIC, {0: 1}, generation=generation, member=first.member
            )
            return ask(connection, question)[0]

        assert commit(first.generation) == NONE
        assert commit(first.generation - 1) == groups.ILLEGAL_GENERATION
        second = ask(connection, groups.join(group, first.member))
        assert commit(second.generation) == groups.REBALANCE_IN_PROGRESS
        assert commit(first.generation) == groups.ILLEGAL_GENERATION
        assert len(second.members) == 2


def test_G13_a_group_of_another_protocol(strict_broker, connection, group):
    joined = enter(connection, group, protocol_type="connect", protocols=[("v1", b"\xff\xfe")])
    own = [(joined.member, b"\xff" * 9)]
    assert ask(connection, groups.sync(group, joined.generation, joined.member, own))[0] == NONE
    assert ask(connection, groups.describe(group)) == (NONE, "Stable", "connect", 1)
    assert ask(connection, groups.list_all())[group] == "connect"
    assert ask(connection, groups.delete(group)) == groups.NON_EMPTY_GROUP
    assert ask(connection, groups.leave(group, (joined.member, None))) == [NONE]
    assert ask(connection, groups.delete(group)) == NONE
    assert ask(connection, groups.delete(group)) == groups.GROUP_ID_NOT_FOUND


def test_G07_a_member_at_some_epoch_joins_anew(connection, group):
    """As a client does that has lost its state: with epoch 0, in whatever state it is known."""
    options = {"topics": [TOPIC], "rebalance_ms": 5000, "owned": {}}
    first = ask(connection, groups.consumer_heartbeat(group, "first", 0, **options))
    assert first.error == NONE and first.epoch > 0
    owned = first.assignment
    beat = ask(connection, groups.consumer_heartbeat(group, "first", first.epoch, owned=owned))
    assert beat.error == NONE
    again = ask(connection, groups.consumer_heartbeat(group, "first", 0, **options))
    assert again.error == NONE and again.assignment, "stable"

    other = ask(connection, groups.consumer_heartbeat(group, "second", 0, **options))
    assert other.error == NONE and not any(other.assignment.values()), "nothing is free yet"
    again = ask(connection, groups.consumer_heartbeat(group, "second", 0, **options))
    assert again.error == NONE, "waits for what others have not given"

    told = ask(
        connection, groups.consumer_heartbeat(group, "first", first.epoch, owned=owned)
    )
    assert told.error in (NONE, groups.FENCED_MEMBER_EPOCH)
    again = ask(connection, groups.consumer_heartbeat(group, "first", 0, **options))
    assert again.error == NONE, "was to give some"


@pytest.mark.fault
def test_G15_a_reader_of_what_is_new_misses_nothing_over_a_restart(own_fast_broker):
    """Its first position is kept before anything comes."""
    broker = own_fast_broker
    confluent.create_topic(broker.address, TOPIC, 1)
    config = {
        "bootstrap.servers": broker.address,
        "group.id": "latest",
        "auto.offset.reset": "latest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
    }
    consumer = ck.Consumer(config)
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.1)
    place = ck.TopicPartition(TOPIC, 0)
    while consumer.position([place])[0].offset < 0:  # until it knows where it is
        consumer.poll(0.1)
        consumer.commit(offsets=[ck.TopicPartition(TOPIC, 0, 0)], asynchronous=False)
        if consumer.committed([place])[0].offset == 0:
            break
    broker.kill()
    broker.start()
    client = confluent.Confluent(broker.address)
    client.produce(TOPIC, [Record(None, b"new")])
    found = None
    for _ in range(300):
        found = consumer.poll(0.1)
        if found is not None and found.error() is None:
            break
    assert found is not None and found.value() == b"new"
    consumer.close()
    client.close()


def test_P11_a_leader_of_before_static_members(strict_broker, connection, group):
    """Its answer has no room for the instance of another; the group settles all the same."""
    leader = ask(connection, groups.join(group, version=2))
    settle(connection, group, leader)
    with RawConnection(strict_broker.address) as other:
        other.send(groups.join(group, instance="one").frame(1))
        while ask(connection, groups.heartbeat(group, leader.generation, leader.member)) == NONE:
            pass
        leader = ask(connection, groups.join(group, leader.member, version=2))
        static = groups.join(group, instance="one").answer(other.receive_frame())
        assert leader.leads and {member for member, _, _ in leader.members} == {
            leader.member, static.member
        }  # fmt: skip
        shares = [(member, groups.assignment(TOPIC, [0])) for member, _, _ in leader.members]
        assert ask(connection, groups.sync(group, leader.generation, leader.member, shares))[0] == NONE
        assert ask(other, groups.sync(group, static.generation, static.member, (), "one"))[0] == NONE
        assert ask(other, groups.describe(group)) == (NONE, "Stable", "consumer", 2)


@pytest.mark.fault
def test_R13_offsets_that_are_deleted_stay_away(own_fast_broker):
    """With the records, across a power cut: who starts anew skips nothing of what comes."""
    broker = own_fast_broker
    client = confluent.Confluent(broker.address)
    client.create_topic(TOPIC, 1)
    client.produce(TOPIC, [Record(None, b"old")] * 10)
    with RawConnection(broker.address) as connection:
        groups.offsets_when_loaded(connection, "anew", TOPIC, [0])
        assert ask(connection, groups.commit("anew", TOPIC, {0: 10})) == {0: NONE}
        client.trim(TOPIC, 0, 10)
        assert ask(connection, groups.delete_offsets("anew", TOPIC, [0])) == NONE
    broker.kill()
    broker.start()
    with RawConnection(broker.address) as connection:
        found = groups.offsets_when_loaded(connection, "anew", TOPIC, [0])
    assert found == {0: (-1, NONE)}
    client.produce(TOPIC, [Record(None, b"new %d" % number) for number in range(5)])
    read = [record.value for record in client.read(TOPIC, 0)]
    assert read[-5:] == [b"new %d" % number for number in range(5)]
    client.close()


def test_a_tool_of_kafkas_is_not_held_up_by_a_foreign_group(strict_broker, connection):
    """G13, as an administrator meets it."""
    foreign = {"protocol_type": "connect", "protocols": [("v1", b"\xff")]}
    joined = enter(connection, "workers", session_ms=60_000, **foreign)  # the tool starts slowly
    own = [(joined.member, b"\xff")]
    ask(connection, groups.sync("workers", joined.generation, joined.member, own))
    said = kafka_tools.output(
        "consumer.group.ConsumerGroupCommand", strict_broker.address, "--list"
    )
    assert "workers" not in said.split()
    assert ask(connection, groups.leave("workers", (joined.member, None))) == [NONE]
