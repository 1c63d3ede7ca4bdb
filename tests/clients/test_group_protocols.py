"""Groups whose members speak both protocols, and subscriptions that the broker resolves."""

import pytest

from harness.confluent import Confluent
from harness.members import MEMBERS, PARTITIONS, SESSION_MS, Crew, NumberedTopic, read_all

# librdkafka's cooperative-sticky keeps data of its own in assignments: Apache Kafka refuses to move
# such a group, and so do we.
PAIRS = {
    "confluent": ("confluent", "confluent-consumer"),
    "java": ("java", "java-consumer"),
    "java-2.8": ("java-2.8", "java-consumer"),
    "franz-go": ("franz-go", "confluent-consumer"),
}


def pytest_generate_tests(metafunc):
    if "pair" in metafunc.fixturenames:
        option = metafunc.config.getoption("--clients")
        names = {"ci": ["confluent", "java"], "all": list(PAIRS)}.get(option, option.split(","))
        names = [name for name in names if name in PAIRS]
        metafunc.parametrize("pair", [PAIRS[name] for name in names], ids=names)


@pytest.fixture
def crew(fast_broker, topic):
    crew = Crew(fast_broker.address, f"group-{topic}", topic)
    yield crew
    crew.close()


def wait_for_protocol(crew: Crew, protocol: str) -> None:
    """As the broker lists the group."""
    client = Confluent(crew.address)

    def listed(_) -> bool:
        groups = client.admin.list_consumer_groups().result().valid
        return {one.group_id: one.type.name.lower() for one in groups}[crew.group] == protocol

    crew.wait(listed, f"the group is not {protocol}")
    client.close()


def test_a_group_moves_to_the_new_protocol_and_back(fast_broker, crew, pair, topic):
    """Members are replaced one by one, each way, and nothing is read twice or not at all."""
    classic, new = (MEMBERS[name] for name in pair)
    options = {"session": SESSION_MS}
    if classic.kind.startswith("java"):
        options["assignor"] = "cooperative"
    sent = NumberedTopic(fast_broker.address, topic)
    old = [crew.add(classic, **options) for _ in range(2)]
    crew.wait_for_shares(PARTITIONS)
    sent.send(100)
    read_all(crew, sent)
    for member in old:
        member.commit()

    first = crew.add(new)
    crew.wait_for_shares(PARTITIONS)
    wait_for_protocol(crew, "consumer")
    sent.send(100)
    read = read_all(crew, sent)
    assert len(read) == len(set(read)), "some message was read twice"

    for member in old:
        member.commit()
        crew.leave(member)
    first.commit()
    crew.wait_for_shares(PARTITIONS)
    back = crew.add(classic, **options)
    crew.wait_for_shares(PARTITIONS)
    crew.leave(first)
    crew.wait_for_shares(PARTITIONS)
    wait_for_protocol(crew, "classic")
    before = len(back.look().read)
    sent.send(100)
    crew.wait(lambda _: len(back.look().read) >= before + 100, "what came last was not read")
    sent.close()


@pytest.mark.parametrize("kind", ["confluent-consumer", "java-consumer"])
def test_an_expression_finds_topics_that_come_later(fast_broker, crew, kind, topic):
    first = NumberedTopic(fast_broker.address, f"{topic}.a")
    crew.topic = f"^{topic}[.].*"
    member = crew.add(MEMBERS[kind])
    first.send(40)
    crew.wait(lambda seen: len(seen[0].read) >= 40, "the first topic was not read")
    later = NumberedTopic(fast_broker.address, f"{topic}.b")
    later.send(40)
    crew.wait(lambda seen: len(seen[0].read) >= 80, "the topic that came later was not read")
    assert len(member.look().read) == 80
    first.close()
    later.close()
