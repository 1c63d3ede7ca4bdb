"""Messages and batches as other or older clients build them: scenarios C01, C03, C05, C09."""

import gzip
import struct

import lz4.frame
import pytest
import snappy
import xxhash

from harness.batches import (
    GZIP,
    LZ4,
    SNAPPY,
    batch_around,
    message,
    record,
    record_batch,
)
from harness.wire import API_FETCH, RawConnection, magics_of

INVALID_RECORD = 87
FETCH_OF_MAGIC = {0: 0, 1: 2, 2: 4}
"""The version of Fetch that brings the format."""
MESSAGE_HEAD = {0: 26, 1: 34}
"""Bytes before a message's value, without a key."""


@pytest.fixture
def wire(broker):
    with RawConnection(broker.address) as connection:
        yield connection


@pytest.fixture
def writer(clients, topic):
    clients["confluent"].create_topic(topic, 1)
    return clients["confluent"]


def fetch(wire: RawConnection, version: int, topic: str, bytes_max: int) -> bytes:
    """The records from offset 0 by Fetch v0 to v4, with that bound for the partition."""
    name = topic.encode()
    body = struct.pack(">iii", -1, 1000, 1)
    body += struct.pack(">i", 50 << 20) if version >= 3 else b""
    body += b"\0" if version >= 4 else b""
    body += struct.pack(f">ih{len(name)}siiqi", 1, len(name), name, 1, 0, 0, bytes_max)
    answer = wire.ask(API_FETCH, version, body)
    at = (4 if version >= 1 else 0) + 4 + 2 + len(name) + 4
    partition, error, _high = struct.unpack_from(">ihq", answer, at)
    assert (partition, error) == (0, 0)
    at += 14 + (8 + 4 if version >= 4 else 0)
    (size,) = struct.unpack_from(">i", answer, at)
    return answer[at + 4 : at + 4 + size]


def lz4_frame(data: bytes, traditional: bool) -> bytes:
    """`traditional`: the checksum of the header is of the magic number too (KAFKA-3160)."""
    frame = bytearray(lz4.frame.compress(data, store_size=False))
    checked = frame[0:6] if traditional else frame[4:6]
    frame[6] = xxhash.xxh32_intdigest(bytes(checked)) >> 8 & 0xFF
    return bytes(frame)


@pytest.mark.old_formats
@pytest.mark.parametrize("traditional", [True, False])
def test_C01_lz4_of_v0_with_either_checksum(wire, writer, topic, traditional):
    inner = b"".join(message(b"%d" % n, offset=n, magic=0) for n in range(3))
    sent = message(lz4_frame(inner, traditional), offset=2, codec=LZ4, magic=0)
    assert wire.produce_messages(topic, 0, sent) == 0
    assert [record.value for record in writer.read(topic, 0)] == [b"0", b"1", b"2"]
    for magic, head in MESSAGE_HEAD.items():
        wrapper = fetch(wire, FETCH_OF_MAGIC[magic], topic, 1 << 20)
        assert magics_of(wrapper) == {magic}
        frame = wrapper[head:]
        checked = frame[0:6] if magic == 0 else frame[4:6]
        assert frame[6] == xxhash.xxh32_intdigest(checked) >> 8 & 0xFF
    assert magics_of(fetch(wire, FETCH_OF_MAGIC[2], topic, 1 << 20)) == {2}


def xerial(data: bytes, chunk_bytes: int) -> bytes:
    framed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    for at in range(0, len(data), chunk_bytes):
        chunk = snappy.compress(data[at : at + chunk_bytes])
        framed += struct.pack(">i", len(chunk)) + chunk
    return framed


@pytest.mark.parametrize("compress", [snappy.compress, lambda data: xerial(data, 1000)])
def test_C03_snappy_in_many_chunks_and_in_none(wire, writer, topic, compress):
    values = [b"%d " % n * 500 for n in range(50)]
    records = b"".join(record(at, value) for at, value in enumerate(values))
    assert len(records) > 32 << 10
    assert wire.produce(topic, 0, batch_around(compress(records), 50, SNAPPY), 3) == 0
    assert [record.value for record in writer.read(topic, 0)] == values


@pytest.mark.old_formats
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("offsets", [(0, 0, 0), (5, 9, 7)])
def test_C05_offsets_inside_a_wrapper_are_renumbered(wire, writer, topic, magic, offsets):
    inner = b"".join(message(b"%d" % n, offset=n, magic=magic) for n in offsets)
    wrapper = message(gzip.compress(inner), offset=offsets[-1], codec=GZIP, magic=magic)
    assert wire.produce_messages(topic, 0, wrapper) == 0
    stored = [(record.offset, record.value) for record in writer.read(topic, 0)]
    assert stored == [(at, b"%d" % n) for at, n in enumerate(offsets)]


@pytest.mark.millrace
@pytest.mark.parametrize("codec", [0, GZIP])
@pytest.mark.parametrize("deltas", [(0, 0, 0), (5, 9, 7)])
def test_C05_offsets_inside_a_batch_must_follow_each_other(wire, writer, topic, deltas, codec):
    """Apache Kafka takes the ones that are not compressed, and has no code for the others."""
    records = b"".join(record(delta, b"value") for delta in deltas)
    batch = batch_around(gzip.compress(records) if codec else records, 3, codec)
    assert wire.produce(topic, 0, batch, 3) == INVALID_RECORD
    assert writer.bounds(topic, 0) == (0, 0)


@pytest.mark.millrace
@pytest.mark.parametrize("magic", FETCH_OF_MAGIC)
def test_C09_an_answer_is_never_cut_within_a_batch(wire, writer, topic, magic):
    """Apache Kafka cuts it where the version allows it."""
    for _ in range(2):
        assert wire.produce(topic, 0, record_batch([bytes(range(200))]), 3) == 0
    version = FETCH_OF_MAGIC[magic]
    both = fetch(wire, version, topic, 1 << 20)
    first = both[: 12 + struct.unpack_from(">i", both, 8)[0]]
    step = max((len(both) - len(first)) // 100, 1)
    for bytes_max in range(len(first), len(both), step):
        assert fetch(wire, version, topic, bytes_max) == first, bytes_max
    assert fetch(wire, version, topic, 1) == first, "one batch always comes"
    assert fetch(wire, version, topic, 2 * len(both)) == both
