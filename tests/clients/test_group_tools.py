"""Groups as administrators see them: our tool, Apache Kafka's, and HTTP tell the same of one group."""

import pytest

from harness import confluent, groups, kafka_tools
from harness.http import Http
from harness.members import (
    FAST,
    PARTITIONS,
    SESSION_MS,
    ConfluentMember,
    ConfluentNewMember,
    Crew,
    Member,
    NumberedTopic,
    read_all,
)
from harness.tool import Tool, run

KAFKAS = "consumer.group.ConsumerGroupCommand"


@pytest.fixture
def tool(fast_broker) -> Tool:
    return Tool(fast_broker.address)


@pytest.fixture(params=[ConfluentMember, ConfluentNewMember], ids=lambda kind: kind.kind)
def member(request) -> type[Member]:
    return request.param


@pytest.fixture
def crew(fast_broker, topic):
    made = Crew(fast_broker.address, f"group-{topic}", topic)
    yield made
    made.close()


@pytest.fixture
def sent(fast_broker, topic):
    made = NumberedTopic(fast_broker.address, topic)
    yield made
    made.close()


def lags(described: dict) -> dict[int, tuple[int | None, int, int | None]]:
    """(committed, end, lag) by partition."""
    return {
        one["partition"]: (one["committed"], one["end"], one["lag"])
        for one in described["partitions"]
    }


def kafkas_view(address: str, group: str) -> dict[int, tuple[int, int, int, str]]:
    """(committed, end, lag, member) by partition, as Kafka's tool prints them."""
    printed = kafka_tools.output(KAFKAS, address, "--describe", "--group", group)
    rows = [line.split() for line in printed.splitlines() if line.startswith(group)]
    return {int(row[2]): (int(row[3]), int(row[4]), int(row[5]), row[6]) for row in rows}


def test_all_tell_the_same_of_a_group(fast_broker, tool, crew, sent, member, request):
    crew.add(member, session=SESSION_MS)
    crew.add(member, session=SESSION_MS)
    crew.wait_for_shares(PARTITIONS)
    sent.send(40)
    read_all(crew, sent)
    for one in crew.members:
        one.commit()
    sent.send(20)

    described = tool.json_lines("group", "describe", crew.group)[0]
    assert described["state"] == "Stable"
    assert described["type"] == member.protocol
    assert lags(described) == {number: (10, 15, 5) for number in range(PARTITIONS)}
    assert len(described["members"]) == 2
    owners = {one["partition"]: one["member_id"] for one in described["partitions"]}
    assert {*owners.values()} == {one["member_id"] for one in described["members"]}
    assert all(one["host"].endswith("127.0.0.1") for one in described["partitions"])

    (listed,) = [
        one for one in tool.json_lines("group", "list")[0]["groups"] if one["group"] == crew.group
    ]
    assert (listed["state"], listed["type"]) == ("Stable", member.protocol)
    assert crew.group in tool.text("group", "list")
    assert "Stable" in tool.text("group", "describe", crew.group)

    theirs = kafkas_view(fast_broker.address, crew.group)
    assert theirs == {number: (10, 15, 5, owners[number]) for number in range(PARTITIONS)}

    if request.config.getoption("--broker") == "millrace":
        shown = Http(fast_broker.http_address()).get(f"/admin/groups/{crew.group}")
        assert {(one["partition"], one["committed"], one["lag"]) for one in shown["offsets"]} == {
            (number, 10, 5) for number in range(PARTITIONS)
        }
        assert {one["member_id"] for one in shown["members"]} == {*owners.values()}


def test_an_active_group_is_neither_reset_nor_deleted(fast_broker, tool, crew, sent, member):
    crew.add(member, session=SESSION_MS)
    crew.wait_for_shares(PARTITIONS)
    sent.send(4)
    for words in (("reset", crew.group, "--to-earliest", "--execute"), ("delete", crew.group)):
        refused = run("-b", fast_broker.address, "group", *words)
        assert refused.code == 1
        assert "NON_EMPTY_GROUP" in refused.errors


def test_a_group_is_reset_dry_first(fast_broker, tool, crew, sent, member):
    first = crew.add(member, session=SESSION_MS)
    sent.send(40)
    read_all(crew, sent)
    first.commit()
    crew.leave(first)

    def reset(*words: object) -> dict[int, tuple[int, int]]:
        answer = tool.json_lines("group", "reset", crew.group, *words)[0]
        assert answer["executed"] is ("--execute" in words)
        return {one["partition"]: (one["from"], one["to"]) for one in answer["partitions"]}

    def committed() -> list[int]:
        found = tool.json_lines("group", "describe", crew.group)[0]
        return [one["committed"] for one in found["partitions"]]

    every = range(PARTITIONS)
    assert reset("--to-earliest") == {number: (10, 0) for number in every}
    assert committed() == [10, 10, 10, 10]
    assert "--execute" in tool.text("group", "reset", crew.group, "--to-earliest")
    assert reset("--shift-by", -3, "--topic", f"{sent.name}:1,2", "--execute") == {
        1: (10, 7),
        2: (10, 7),
    }
    assert committed() == [10, 7, 7, 10]
    assert reset("--to-offset", 5, "--execute") == {0: (10, 5), 1: (7, 5), 2: (7, 5), 3: (10, 5)}
    assert reset("--to-offset", 1000)[0] == (5, 10)
    assert reset("--shift-by", -(2**62))[0] == (5, 0)
    assert reset("--to-datetime", "2001-01-01T00:00:00Z")[0] == (5, 0)
    assert reset("--to-datetime", "@4102444800000")[0] == (5, 10)
    assert reset("--to-latest", "--topic", sent.name, "--execute")[3] == (5, 10)
    assert committed() == [10, 10, 10, 10]

    # Kafka's tool does the same, and what either has set, both see.
    kafka_tools.output(
        KAFKAS,
        fast_broker.address,
        *("--reset-offsets", "--group", crew.group, "--topic", sent.name),
        *("--shift-by", -4, "--execute"),
    )
    assert committed() == [6, 6, 6, 6]
    would = tool.text("group", "delete", crew.group)
    assert f"group {crew.group} would be deleted with its 4 offsets; --execute does it" in would
    (dry,) = tool.json_lines("group", "delete", crew.group)
    assert dry["deleted"] is False and [one["committed"] for one in dry["partitions"]] == [6] * 4
    assert committed() == [6, 6, 6, 6]
    tool.text("group", "delete", crew.group, "--execute")
    gone = run("-b", fast_broker.address, "group", "describe", crew.group)
    assert gone.code == 1
    assert "GROUP_ID_NOT_FOUND" in gone.errors


def test_kafkas_tool_lists_deletes_offsets_and_groups(fast_broker, tool, crew, sent):
    first = crew.add(ConfluentNewMember, session=SESSION_MS)
    sent.send(4)
    read_all(crew, sent)
    first.commit()
    crew.leave(first)
    address = fast_broker.address
    states = kafka_tools.output(KAFKAS, address, "--list", "--state")
    assert [crew.group, "Empty"] in [line.split() for line in states.splitlines()]
    kafka_tools.output(
        KAFKAS, address, "--delete-offsets", "--group", crew.group, "--topic", sent.name
    )
    with groups.RawConnection(address) as connection:
        found = groups.offsets_when_loaded(connection, crew.group, sent.name, range(PARTITIONS))
        assert {offset for offset, _ in found.values()} == {-1}
    kafka_tools.output(KAFKAS, address, "--delete", "--group", crew.group)
    assert crew.group not in kafka_tools.output(KAFKAS, address, "--list").split()


def test_offsets_for_a_group_that_is_not_there_yet(fast_broker, tool, sent):
    sent.send(40)
    words = ("reset", "made-by-reset", "--to-latest")
    nothing = run("-b", fast_broker.address, "group", *words)
    assert nothing.code == 64
    assert "--topic" in nothing.errors
    tool.text("group", *words, "--topic", sent.name, "--execute")
    found = tool.json_lines("group", "describe", "made-by-reset")[0]
    assert (found["state"], found["members"]) == ("Empty", [])
    assert lags(found) == {number: (10, 10, 0) for number in range(PARTITIONS)}
    slip = run("-b", fast_broker.address, "group", "describe", "made-by-rest")
    assert "GROUP_ID_NOT_FOUND" in slip.errors and "nearest known: made-by-reset" in slip.errors
    tool.text("group", "delete", "made-by-reset", "--execute")


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["describe", "no-such"], 1, "GROUP_ID_NOT_FOUND: group 'no-such'"),
        (["delete", "no-such"], 1, "GROUP_ID_NOT_FOUND: group 'no-such'"),
        (["reset", "g"], 64, "expected one of --to-earliest"),
        (["reset", "g", "--to-earliest", "--to-latest"], 64, "expected one of --to-earliest"),
        (["reset", "g", "--to-datetime", "yesterday"], 64, "2026-11-29T10:00:00Z"),
        (["reset", "g", "--to-datetime", "2026-02-30"], 64, "no point in time"),
        (["reset", "g", "--to-latest", "--topic", "no-such"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (["reset", "g", "--to-latest", "--topic", "__consumer_offsets:x"], 64, "TOPIC:PARTITION"),
        ([], 64, "expected a verb: list"),
    ],
)
@pytest.mark.millrace
def test_a_mistake_is_explained(fast_broker, words, code, said):
    outcome = run("-b", fast_broker.address, "group", *words)
    assert (outcome.code, outcome.output) == (code, "")
    assert said in outcome.errors


@pytest.mark.millrace
def test_a_long_name_is_not_said_in_full(fast_broker, tool):
    """The front of it, and how long it is; where it is told to programs it is whole."""
    name = "long-name-" + "g" * 30_000
    for words in (("describe", name), ("delete", name), ("reset", name, "--to-datetime", name)):
        refused = run("-b", fast_broker.address, "group", *words)
        assert refused.code != 0 and len(refused.errors) < 500, refused.errors[:1000]
        assert "... (300" in refused.errors, refused.errors
    with groups.RawConnection(fast_broker.address) as connection:
        groups.offsets_when_loaded(connection, name, "orders", [0])
        joined = groups.ask(connection, groups.join(name))
        joined = groups.ask(connection, groups.join(name, joined.member))
        assert joined.error == groups.NONE
        assert max(map(len, tool.text("group", "list").splitlines())) < 1000
        (listed,) = tool.json_lines("group", "list")
        assert name in [one["group"] for one in listed["groups"]]
        groups.ask(connection, groups.leave(name, (joined.member, None)))


def test_records_of_groups_are_compressed_as_the_broker_is_told(broker_kind, tmp_path):
    gzip = 1
    attributes_at = 22  # of a batch: the lower byte
    own = broker_kind(tmp_path / "broker", FAST | {"offsets.topic.compression.codec": gzip})
    try:
        own.start()
        confluent.create_topic(own.address, "orders", 1)
        with groups.RawConnection(own.address) as connection:
            groups.offsets_when_loaded(connection, "packed", "orders", [0])
            for offset in (7, 8):
                question = groups.commit("packed", "orders", {0: offset})
                assert groups.ask(connection, question) == {0: groups.NONE}
        own.end()
        own.start()
        with groups.RawConnection(own.address) as connection:
            found = groups.offsets_when_loaded(connection, "packed", "orders", [0])
            assert found == {0: (8, groups.NONE)}
        own.end()
        logs = [log.read_bytes() for log in own.folder.glob("data/__consumer_offsets-*/*.log")]
        assert {log[attributes_at] & 7 for log in logs if log} == {gzip}
    finally:
        own.close()
