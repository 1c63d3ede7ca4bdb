"""What a later version has left in a data directory is refused, with a sentence and an exit code, and
stays as it is."""

import struct

import pytest
from crc32c import crc32c

from harness.broker import Millrace
from harness.confluent import Confluent

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

HEADER_BYTES = 16


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A broker that has a topic, between two starts."""
    broker = Millrace(tmp_path_factory.mktemp("broker"), {"num.partitions": 1})
    try:
        broker.start()
        Confluent(broker.address).create_topic("orders", 1)
        assert broker.stop()[0] == 0
        yield broker
    finally:
        broker.close()


def later_journal(content: bytes) -> bytes:
    head = b"MRJ2" + content[4:12]
    return head + struct.pack(">I", crc32c(head)) + content[HEADER_BYTES:]


def entry(key: bytes, value: bytes) -> bytes:
    """Of the journal, as plugins/coordination/standalone/README.md has it."""
    body = struct.pack(">I", len(key)) + key + struct.pack(">BqI", 1, 1, len(value)) + value
    return struct.pack(">II", len(body), crc32c(body)) + body


def at_later_level(content: bytes) -> bytes:
    return content + entry(b"/millrace/level", b'{"version":1,"level":2}')


def with_later_topic(content: bytes) -> bytes:
    return content + entry(b"/brokers/topics/orders", b'{"version":4,"partitions":{"0":[1]}}')


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("coordination.journal", later_journal, "is a journal of version 2, and this broker knows version 1"),
        ("coordination.journal", at_later_level, "/millrace/level: the cluster is at level 2"),
        (
            "coordination.journal",
            with_later_topic,
            "/brokers/topics/orders is of format version 4, and this broker knows up to 3",
        ),
        (
            "meta.properties",
            lambda _: b"version=2\nnode.id=1\ncluster.id=x\n",
            "version is '2', expected 0 or 1",
        ),
        ("log-start-offset-checkpoint", lambda _: b"1\n0\n", "expected version 0, found 1"),
    ],
    ids=["journal", "level", "topic", "meta.properties", "checkpoint"],
)
def test_a_later_version_is_refused(stopped, name, change, sentence):
    file = stopped.folder / "data" / name
    before = file.read_bytes() if file.exists() else None
    later = change(before)
    file.write_bytes(later)
    try:
        with pytest.raises(AssertionError, match="code 65") as refused:
            stopped.start()
        assert sentence in str(refused.value)
        assert "start the version" in (said := str(refused.value).lower()) or "start a version" in said
        # A start counts itself in the journal; nothing that was there has changed.
        assert file.read_bytes()[HEADER_BYTES:].startswith(later[HEADER_BYTES:])
    finally:
        file.unlink()
        if before is not None:
            file.write_bytes(before)
    stopped.start()
    assert stopped.stop()[0] == 0
