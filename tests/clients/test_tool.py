"""The `millrace` tool beside the clients that people use already."""

import pytest

from conftest import PARTITIONS
from harness.records import CODECS, Record
from harness.tool import Tool, ToolFailed


@pytest.fixture(scope="module")
def tool(broker) -> Tool:
    return Tool(broker.address)


def test_a_topic_is_created_listed_described_and_deleted(tool, clients, topic):
    tool.run("topic", "create", topic, "--partitions", "5")
    assert clients["java"].partition_count(topic) == 5
    (listed,) = tool.run("topic", "list")
    assert (topic, 5) in {(one["topic"], one["partitions"]) for one in listed["topics"]}
    (described,) = tool.run("topic", "describe", topic)
    assert [one["partition"] for one in described["partitions"]] == list(range(5))

    with pytest.raises(ToolFailed, match=topic):
        tool.run("topic", "create", topic)
    tool.run("topic", "delete", topic)
    (listed,) = tool.run("topic", "list")
    assert topic not in {one["topic"] for one in listed["topics"]}


@pytest.mark.parametrize("codec", CODECS)
def test_all_clients_read_what_the_tool_sent(tool, clients, topic, codec):
    clients["confluent"].create_topic(topic, PARTITIONS)
    sent = [Record(b"key-%d" % n, b"value %d" % n, (("origin", b"tool"),)) for n in range(1000)]
    lines = b"".join(b"%b|%b\n" % (record.key, record.value) for record in sent)
    tool.run(
        *("produce", topic, "--key-separator", "|", "--header", "origin=tool"),
        *("--compression", codec),
        stdin=lines,
    )
    for reader in clients.values():
        partitions = reader.read_all(topic, PARTITIONS).values()
        stored = [record for records in partitions for record in records]
        assert sorted(stored, key=lambda record: record.key) == sorted(
            sent, key=lambda record: record.key
        ), reader.name


@pytest.mark.parametrize("codec", CODECS)
def test_the_tool_reads_what_a_client_sent(tool, clients, topic, codec):
    clients["confluent"].create_topic(topic, 1)
    sent = [Record(b"key", b"value %d" % n, (("n", b"%d" % n),)) for n in range(1000)]
    sent.append(Record(b"key", None, ()))
    sent.append(Record(None, b"", ()))
    clients["confluent"].produce(topic, sent, codec=codec)
    assert [record_of(line) for line in tool.run("consume", topic)] == sent
    assert [record_of(line) for line in tool.run("consume", topic, "--from", "995")] == sent[995:]
    first_two = tool.run("consume", topic, "--partition", "0", "--count", "2")
    assert [record_of(line) for line in first_two] == sent[:2]


def test_a_key_goes_where_the_java_client_sends_it(tool, clients, topic):
    """Two programs that write to a topic must agree on where a key lives."""
    keys = [b"", *(b"k" * n for n in range(1, 20)), *(b"key-%d" % n for n in range(500))]
    keys += ["größe".encode(), "尺寸".encode(), "\u00ff\u0080".encode()]
    partitions = 7
    clients["java"].create_topic(topic, partitions)
    clients["java"].produce(topic, [Record(key, b"java") for key in keys])
    tool.run(
        *("produce", topic, "--key-separator", "|"),
        stdin=b"".join(key + b"|tool\n" for key in keys),
    )
    chosen: dict[bytes, dict[bytes, int]] = {b"java": {}, b"tool": {}}
    for partition in range(partitions):
        for record in clients["java"].read(topic, partition):
            chosen[record.value][record.key] = partition
    assert chosen[b"tool"] == chosen[b"java"]


def test_an_unknown_topic_is_named(tool, topic):
    with pytest.raises(ToolFailed, match=topic):
        tool.run("consume", topic)


def record_of(line: dict) -> Record:
    def content(text: str | dict | None) -> bytes | None:
        if isinstance(text, dict):
            return bytes.fromhex(text["hex"])
        return None if text is None else text.encode()

    headers = tuple((header["key"], content(header["value"])) for header in line["headers"])
    return Record(content(line["key"]), content(line["value"]), headers)
