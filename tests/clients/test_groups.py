"""Groups of real clients: they share partitions, join, leave and die; each message reaches the
group once; what they have committed outlives them and the broker."""

import time

import pytest

from conftest import running
from harness import fleet, groups
from harness.members import (
    FAST,
    MEMBERS,
    PARTITIONS,
    SESSION_MS,
    SETTLE_SECONDS,
    Crew,
    Member,
    NumberedTopic,
    Seen,
    chosen,
    read_all,
    values,
)

FEW = ("confluent", "confluent-consumer")
MORE = (*FEW, "java-consumer")
"""Members that `ci` runs every test with, and those that share out partitions and die there."""
NOTICED_SECONDS_MAX = 25
"""From the end of a session until the others share what its member had, on a busy machine."""
OF_ABILITY = {"lean": None, "patient": "patient", "cooperative": "cooperative", "static": "static"}


def pytest_generate_tests(metafunc):
    """A test that asks for one of these is run with each member of the run that is able to."""
    option = metafunc.config.getoption("--clients")
    for fixture in {"member", *OF_ABILITY} & set(metafunc.fixturenames):
        names = chosen_by(option)
        if option == "ci":
            names = MORE if fixture == "member" else FEW
        ability = OF_ABILITY.get(fixture)
        able = [name for name in names if ability is None or getattr(MEMBERS[name], ability)]
        metafunc.parametrize(fixture, [MEMBERS[name] for name in able], ids=able)


def chosen_by(option: str) -> list[str]:
    return chosen(fleet.chosen(option))


@pytest.fixture
def crews():
    """Makes crews that end with the test."""
    made: list[Crew] = []

    def make(address: str, name: str) -> Crew:
        made.append(Crew(address, f"group-{name}", name))
        return made[-1]

    yield make
    for crew in made:
        crew.close()


def commit(crew: Crew) -> None:
    for member in crew.members:
        if not member.commits_on_its_own:
            member.commit()


def wait_for_commits(address: str, crew: Crew, topic: NumberedTopic) -> None:
    """Of clients that commit on their own."""
    with groups.RawConnection(address) as connection:
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            question = groups.offsets(crew.group, topic.name, range(PARTITIONS))
            _, found = groups.ask(connection, question)
            if sum(offset for offset, _ in found.values()) == len(topic.sent):
                return
            assert time.monotonic() < deadline, found


def test_a_group_lives(fast_broker, crews, member: type[Member], topic):
    """One joins, a second joins, leaves, joins again and dies: each message is read once, and what
    a dead member had goes on elsewhere once its session is over."""
    sent = NumberedTopic(fast_broker.address, topic)
    crew = crews(fast_broker.address, topic)
    first = crew.add(member, session=SESSION_MS)
    crew.wait_for_shares(PARTITIONS)
    sent.send(400)
    read_all(crew, sent)
    commit(crew)
    wait_for_commits(fast_broker.address, crew, sent)

    second = crew.add(member, session=SESSION_MS)
    crew.wait_for_shares(PARTITIONS)
    sent.send(400)
    read = read_all(crew, sent)
    assert len(read) == len(set(read)), "some message was read twice"
    commit(crew)
    wait_for_commits(fast_broker.address, crew, sent)

    before = values([second.look()])
    crew.leave(second)
    crew.wait_for_shares(PARTITIONS)
    crew.add_again(second)
    crew.wait_for_shares(PARTITIONS)
    before += values([second.look()])
    died_at = time.monotonic()
    crew.kill(second)
    (alone,) = crew.wait_for_shares(PARTITIONS)
    took = time.monotonic() - died_at
    assert took < SESSION_MS / 1000 + NOTICED_SECONDS_MAX, f"{took} s to notice"
    sent.send(400)
    read = read_all(crew, sent, before)
    assert len(read) == len(set(read)), "some message was read twice"
    assert first in crew.members and alone.owns == set(range(PARTITIONS))
    sent.close()


def test_what_is_committed_outlives_client_and_broker(
    own_fast_broker, crews, lean: type[Member], topic
):
    sent = NumberedTopic(own_fast_broker.address, topic)
    sent.send(200)
    crew = crews(own_fast_broker.address, topic)
    member = crew.add(lean, session=SESSION_MS)
    read_all(crew, sent)
    commit(crew)
    wait_for_commits(own_fast_broker.address, crew, sent)
    crew.leave(member)

    own_fast_broker.kill()
    own_fast_broker.start()
    sent.send(200)
    crew.add(lean, session=SESSION_MS)

    def newer(seen: list[Seen]) -> bool:
        return len(values(seen)) >= 200

    read = values(crew.wait(newer, "the rest was not read"))
    assert sorted(map(int, read)) == list(range(200, 400))
    sent.close()


@pytest.mark.fault
def test_a_broker_killed_in_a_rebalance_comes_back_and_the_group_settles(
    own_fast_broker, crews, patient: type[Member], topic
):
    sent = NumberedTopic(own_fast_broker.address, topic)
    crew = crews(own_fast_broker.address, topic)
    crew.add(patient, session=SESSION_MS)
    crew.wait_for_shares(PARTITIONS)
    sent.send(200)
    read_all(crew, sent)
    commit(crew)
    for _ in range(2):
        crew.add(patient, session=SESSION_MS)  # returns before the others have rejoined
        own_fast_broker.kill()
        own_fast_broker.start()
    crew.wait_for_shares(PARTITIONS)
    sent.send(200)
    read = read_all(crew, sent)
    assert set(read) == sent.sent
    sent.close()


def test_others_go_on_during_a_cooperative_hand_over(
    fast_broker, crews, cooperative: type[Member], topic
):
    """Who keeps a partition is never told to give it."""
    sent = NumberedTopic(fast_broker.address, topic)
    crew = crews(fast_broker.address, topic)
    first = crew.add(cooperative, session=SESSION_MS, assignor="cooperative")
    crew.wait_for_shares(PARTITIONS)
    crew.add(cooperative, session=SESSION_MS, assignor="cooperative")
    kept, got = (one.owns for one in crew.wait_for_shares(PARTITIONS))
    gave = set().union(*first.look().gave)
    assert kept & gave == set(), f"gave {gave} and kept {kept}"
    assert gave == got
    sent.send(100)
    read_all(crew, sent)
    sent.close()


@pytest.fixture
def patient_broker(broker_kind, tmp_path):
    """As fast_broker, but nobody is out whom a busy machine keeps from beating: in the consumer
    protocol the broker says how long a session is."""
    own = broker_kind(
        tmp_path / "broker", FAST | {"group.consumer.session.timeout.ms": 4 * SESSION_MS}
    )
    with running(own):
        yield own


def test_a_static_member_comes_back_without_a_rebalance(
    patient_broker, crews, static: type[Member], topic
):
    sent = NumberedTopic(patient_broker.address, topic)
    crew = crews(patient_broker.address, topic)
    stays = crew.add(static, session=4 * SESSION_MS, instance="stays")
    goes = crew.add(static, session=4 * SESSION_MS, instance="goes")
    crew.wait_for_shares(PARTITIONS)
    had = goes.look().owns
    given_before = len(stays.look().gave)

    if static.protocol == "consumer":  # who comes for a place that was not given up is refused
        crew.leave(goes)
    else:
        crew.kill(goes)
    crew.add(static, session=4 * SESSION_MS, instance="goes")
    crew.wait_for_shares(PARTITIONS)
    again = crew.members[-1].look().owns
    assert again == had
    assert len(stays.look().gave) == given_before, "the other one was disturbed"
    sent.send(100)
    read_all(crew, sent)
    sent.close()
