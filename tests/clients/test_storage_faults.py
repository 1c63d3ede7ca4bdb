"""What a broker does with a data folder that something else has damaged between two runs."""

import pytest

from harness.broker import Millrace
from harness.client import ClientError
from harness.confluent import Confluent, create_topic
from harness.records import numbered_records

pytestmark = [pytest.mark.fault, pytest.mark.millrace]


@pytest.fixture
def stored(tmp_path):
    """A broker that is stopped, with a hundred records in `orders`, in several segments."""
    broker = Millrace(tmp_path / "broker", {"num.partitions": 1, "log.segment.bytes": 4096})
    try:
        broker.start()
        client = Confluent(broker.address)
        client.create_topic("orders", 1)
        for at in range(10):
            client.produce("orders", numbered_records(100)[at * 10 : at * 10 + 10])
        assert broker.stop()[0] == 0
        yield broker
    finally:
        broker.close()


def content_of(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.log")}


def test_a_log_whose_metadata_is_lost_survives_a_new_topic_of_its_name(stored):
    data = stored.folder / "data"
    (data / "coordination.journal").unlink()
    before = content_of(data / "orders-0")
    stored.start()
    stored.wait_for_log_line("belongs to no known topic", "orders-0")
    for _ in range(2):
        with pytest.raises(ClientError, match="topic id"):
            create_topic(stored.address, "orders", 1)
    assert content_of(data / "orders-0") == before
    assert stored.stop()[0] == 0
    assert content_of(data / "orders-0") == before


@pytest.mark.parametrize("damage", ["removed", "garbage", "torn"])
def test_indexes_are_rebuilt(stored, damage):
    indexes = list((stored.folder / "data" / "orders-0").glob("*index"))
    assert len(indexes) > 4
    for index in indexes:
        if damage == "removed":
            index.unlink()
        elif damage == "garbage":
            index.write_bytes(b"\xa5" * 64)
        else:
            index.write_bytes(index.read_bytes()[:-3])
    stored.start()
    assert len(Confluent(stored.address).read("orders", 0)) == 100
    assert stored.stop()[0] == 0


@pytest.mark.parametrize("tail", [bytes(5000), b"\x5a" * 5000], ids=["zeros", "garbage"])
def test_a_tail_that_is_no_batch_is_cut(stored, tail):
    last = sorted((stored.folder / "data" / "orders-0").glob("*.log"))[-1]
    with last.open("ab") as log:
        log.write(tail)
    stored.start()
    stored.wait_for_log_line("cut a torn tail", "orders-0")
    client = Confluent(stored.address)
    client.produce("orders", numbered_records(1))
    assert [record.offset for record in client.read("orders", 0)] == list(range(101))
    assert stored.stop()[0] == 0


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_a_checkpoint_that_cannot_be_read_costs_no_record(stored, name):
    (stored.folder / "data" / name).write_bytes(b"\xff\x00garbage")
    stored.start()
    stored.wait_for_log_line("checkpoint file cannot be read", name)
    assert len(Confluent(stored.address).read("orders", 0)) == 100
    assert stored.stop()[0] == 0


def test_a_damaged_journal_is_refused_and_left_as_it_is(stored):
    journal = stored.folder / "data" / "coordination.journal"
    content = bytearray(journal.read_bytes())
    content[16 + 9] ^= 1  # behind the header, in the first of several entries
    journal.write_bytes(content)
    with pytest.raises(AssertionError, match="code 65"):
        stored.start()
    assert journal.read_bytes() == content
    assert (stored.folder / "data" / "orders-0").is_dir()


def test_R07_flipped_bits_in_the_journal_remove_no_log(stored):
    """The broker refuses to start, or starts without what a torn end of the journal had told."""
    journal = stored.folder / "data" / "coordination.journal"
    folder = stored.folder / "data" / "orders-0"
    content, logs = journal.read_bytes(), content_of(folder)
    refused = 0
    for at in range(0, len(content), max(len(content) // 20, 1)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        journal.write_bytes(damaged)
        try:
            stored.start()
            assert stored.stop()[0] == 0
        except AssertionError as error:
            assert "code 65" in str(error)
            assert journal.read_bytes() == damaged
            refused += 1
        assert content_of(folder) == logs
    assert refused > 10
