"""What clients of the times of formats V0, V1 and V2 write, each of the others reads, whatever the
topic keeps it in: the broker converts, and compresses again, where it must."""

import time
from dataclasses import replace

import pytest

from conftest import PARTITIONS
from harness.fleet import OLD
from harness.records import assert_same_and_in_order, numbered_records
from harness.wire import RawConnection, codecs_of_batches, magics_of

pytestmark = [pytest.mark.old_formats, pytest.mark.all_clients]

RECORDS = 200
CODECS = ("none", "gzip", "snappy", "lz4")
FORMATS = {"0.9.0": 0, "0.10.0": 1}
SAMPLE = ("java-0.8.2", "java-0.10", "java-2.0", "kafka-node")
"""One of each format that is sent, and one that shares no code with them."""
TODAY = ("confluent", "java", "kafka-python")
TIMED = ("java-0.10", "java-0.11", "java-1.1", "java-2.0")
"""Those of the old ones that give a record its time, and tell it."""
FIRST_TIME = time.time_ns() // 1_000_000 - 3_600_000
"""Not so old that retention takes it."""


def times_of(records) -> dict[bytes, int | None]:
    return {record.value: record.timestamp for record in records}


def write_and_read(
    clients, topic: str, writer: str, sent_in: str, kept_in: str, *, kept_with_times: bool = True
) -> None:
    sent = numbered_records(RECORDS, headers=())
    timed = kept_with_times and writer in TIMED
    if timed:  # the newest is neither the first of a batch nor its last
        sent = [replace(one, timestamp=FIRST_TIME + n * 37 % 101) for n, one in enumerate(sent)]
    clients[writer].produce(topic, sent, codec=sent_in)
    for name in (*(name for name, kind in OLD.items() if kept_in in kind.codecs), *TODAY):
        reader = clients[name]
        try:
            read = reader.read_all(topic, PARTITIONS)
            assert_same_and_in_order(reader.seen(sent), read)
            if timed and name in (*TIMED, *TODAY):
                stored = [one for records in read.values() for one in records]
                assert times_of(stored) == times_of(sent)
        except Exception as failure:
            raise AssertionError(
                f"{name} cannot read what {writer} wrote in {sent_in}: {failure}"
            ) from failure


@pytest.mark.parametrize(
    ("writer", "codec"),
    [(name, codec) for name, kind in OLD.items() for codec in CODECS if codec in kind.codecs],
)
def test_each_reads_what_every_other_wrote(clients, broker, topic, writer, codec):
    clients["confluent"].create_topic(topic, PARTITIONS)
    write_and_read(clients, topic, writer, codec, codec)
    with RawConnection(broker.address) as connection:
        batches = connection.fetch_batches(topic, 0)
    assert magics_of(batches) == {2}
    assert CODECS.index(codec) in codecs_of_batches(batches)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", SAMPLE)
def test_a_topics_own_codec_is_read_by_all(clients, broker, topic, writer, codec):
    kept = {"compression.type": "uncompressed" if codec == "none" else codec}
    clients["confluent"].create_topic(topic, PARTITIONS, kept)
    sent_in = "none" if codec == "gzip" else "gzip"
    write_and_read(clients, topic, writer, sent_in, codec)
    with RawConnection(broker.address) as connection:
        batches = connection.fetch_batches(topic, 0)
    assert set(codecs_of_batches(batches)) == {CODECS.index(codec)}


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("writer", SAMPLE)
def test_a_topics_old_format_is_read_by_all(clients, broker, topic, writer, version):
    clients["confluent"].create_topic(topic, PARTITIONS, {"message.format.version": version})
    write_and_read(clients, topic, writer, "gzip", "gzip", kept_with_times=FORMATS[version] > 0)
    with RawConnection(broker.address) as connection:
        assert magics_of(connection.fetch_batches(topic, 0)) == {FORMATS[version]}
