"""What a batch says beside its records' bytes: who sent it and in which place, when, whose time that is. All of it
stays where the broker compresses anew or converts, for readers and for the broker itself after a crash."""

import gzip
import struct
import time

import cramjam
import pytest
from crc32c import crc32c

from harness.batches import GZIP, batch_around, message, varint
from harness.confluent import Confluent
from harness.records import CODECS, Record
from harness.wire import API_FETCH, RawConnection

pytestmark = pytest.mark.millrace

API_INIT_PRODUCER_ID = 22
T = 1_700_000_000_000
DELTAS = (20, 0, 10)
"""Of the records' times: neither the first nor the last is the newest."""
CREATE_TIME, LOG_APPEND_TIME = 0, 8
TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x10, 0x20, 0x40
INVALID_PRODUCER_EPOCH, INVALID_RECORD = 47, 87
FOREVER = {"retention.ms": "-1"}
KEYS_AND_VALUES = [(b"key-0", b"value-0" * 20), (None, b""), (b"key-2", None)]


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def full_record(at: int) -> bytes:
    """With a time of its own and headers, of which one has no value and two have the same name."""
    key, value = KEYS_AND_VALUES[at]
    headers = [(b"name", b"%d" % at), (b"name", b"again"), (b"nothing", None)]
    content = b"\0" + varint(DELTAS[at]) + varint(at) + field(key) + field(value)
    content += varint(len(headers)) + b"".join(field(name) + field(of) for name, of in headers)
    return varint(len(content)) + content


RECORDS = b"".join(full_record(at) for at in range(3))


def batch(codec: int = 0, attributes: int = 0, producer: tuple[int, int, int] = (-1, -1, -1)) -> bytes:
    """Those records; sent with gzip or nothing."""
    body = gzip.compress(RECORDS) if codec == GZIP else RECORDS
    whole = bytearray(
        batch_around(body, 3, codec | attributes, T, struct.pack(">qhi", *producer))
    )
    struct.pack_into(">q", whole, 35, T + max(DELTAS))
    struct.pack_into(">I", whole, 17, crc32c(bytes(whole[21:])))
    return bytes(whole)


def opened(codec: int, body: bytes) -> bytes:
    if CODECS[codec] == "none":
        return body
    if CODECS[codec] == "snappy":  # in chunks, as Java's library frames it
        at, chunks = 16, []
        while at < len(body):
            (size,) = struct.unpack_from(">i", body, at)
            chunks.append(bytes(cramjam.snappy.decompress_raw(body[at + 4 : at + 4 + size])))
            at += 4 + size
        return b"".join(chunks)
    return bytes(getattr(cramjam, CODECS[codec]).decompress(body))


def heads(batches: bytes) -> list[dict]:
    """Of each whole batch of format V2 its fields, and the bytes of its records."""
    names = "leader magic crc attributes last first_time newest id epoch sequence count".split()
    found, at = [], 0
    while at + 61 <= len(batches):
        base, length = struct.unpack_from(">qi", batches, at)
        fields = dict(zip(names, struct.unpack_from(">ibIhiqqqhii", batches, at + 12), strict=True))
        end = at + 12 + length
        assert fields.pop("crc") == crc32c(batches[at + 21 : end])
        fields["codec"] = fields["attributes"] & 7
        fields["bytes"] = opened(fields["codec"], batches[at + 61 : end])
        found.append(fields | {"base": base})
        at = end
    return found


def stored_in(wire: RawConnection, topic: str) -> list[dict]:
    error, batches = wire.fetch(topic, 0, version=10)  # older ones are not told of zstd
    assert error == 0
    return heads(batches)


def init_producer(wire: RawConnection) -> tuple[int, int]:
    answer = wire.ask(API_INIT_PRODUCER_ID, 0, struct.pack(">hi", -1, 60_000))
    _throttle, error, identity, epoch = struct.unpack(">ihqh", answer)
    assert error == 0
    return identity, epoch


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def assert_time_kept(head: dict, kind: int, before: int) -> None:
    assert head["attributes"] & ~7 == kind
    assert head["first_time"] == T
    if kind == CREATE_TIME:
        assert head["newest"] == T + max(DELTAS)
    else:
        assert before <= head["newest"] <= now_ms()


def assert_read_as_sent(read: list[Record], kind: str, before: int) -> None:
    assert [(one.key, one.value) for one in read] == KEYS_AND_VALUES * 2
    for at, one in enumerate(read):
        headers = (("name", b"%d" % (at % 3)), ("name", b"again"), ("nothing", None))
        assert one.headers == headers
        if kind == "CreateTime":
            assert one.timestamp == T + DELTAS[at % 3]
        else:
            assert before <= one.timestamp <= now_ms()


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("sent", [0, GZIP])
@pytest.mark.parametrize("kept", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_is_compressed_anew_stays_what_it_was(broker, topic, kept, sent, kind):
    settings = {"compression.type": kept, "message.timestamp.type": kind} | FOREVER
    client = Confluent(broker.address)
    client.create_topic(topic, 1, settings)
    before = now_ms()
    with RawConnection(broker.address) as wire:
        identity, epoch = init_producer(wire)
        for sequence in (0, 3):
            one = batch(sent, producer=(identity, epoch, sequence))
            assert wire.produce_at(topic, 0, one, 3) == (0, sequence)
        stored = stored_in(wire, topic)
    assert [(one["base"], one["sequence"]) for one in stored] == [(0, 0), (3, 3)]
    for one in stored:
        assert one["codec"] == (0 if kept == "uncompressed" else CODECS.index(kept))
        assert (one["id"], one["epoch"], one["count"], one["last"]) == (identity, epoch, 3, 2)
        assert one["bytes"] == RECORDS
        assert_time_kept(one, LOG_APPEND_TIME if kind == "LogAppendTime" else CREATE_TIME, before)
    if sent == GZIP:  # so that a client is asked once for each
        assert_read_as_sent(client.read(topic, 0), kind, before)
    client.close()


@pytest.mark.fault
def test_the_producer_of_what_was_compressed_anew_is_known_after_a_kill(own_broker, topic):
    """From the log itself: nothing else has been written of it yet."""
    Confluent(own_broker.address).create_topic(topic, 1, {"compression.type": "zstd"} | FOREVER)
    with RawConnection(own_broker.address) as wire:
        identity, epoch = init_producer(wire)
        sent = [batch(GZIP, producer=(identity, epoch, sequence)) for sequence in (0, 3)]
        for at, one in enumerate(sent):
            assert wire.produce_at(topic, 0, one, 3) == (0, 3 * at)
    own_broker.kill()
    own_broker.start()
    with RawConnection(own_broker.address) as wire:
        for at, one in enumerate(sent):
            assert wire.produce_at(topic, 0, one, 3) == (0, 3 * at), "sent again"
        after = batch(GZIP, producer=(identity, epoch, 6))
        assert wire.produce_at(topic, 0, after, 3) == (0, 6)
        assert [one["codec"] for one in stored_in(wire, topic)] == [4, 4, 4]


@pytest.mark.parametrize("kept", ["producer", "lz4"])
@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        (TRANSACTIONAL, INVALID_PRODUCER_EPOCH),
        (CONTROL, INVALID_RECORD),
        (CONTROL | TRANSACTIONAL, INVALID_PRODUCER_EPOCH),
        (DELETE_HORIZON, INVALID_RECORD),
    ],
)
def test_a_client_may_not_say_what_is_the_brokers_to_say(broker, topic, kept, attributes, error):
    """Compressed anew or not: a marker of a client's would end other producers' transactions."""
    client = Confluent(broker.address)
    client.create_topic(topic, 1, {"compression.type": kept} | FOREVER)
    with RawConnection(broker.address) as wire:
        identity, epoch = init_producer(wire)
        wrong = batch(GZIP, attributes, (identity, epoch, 0))
        assert wire.produce(topic, 0, wrong, 3) == error
    assert client.bounds(topic, 0) == (0, 0)
    client.close()


def old_fetch(wire: RawConnection, topic: str, version: int) -> bytes:
    """By Fetch v1 in format V0, by v2 in V1."""
    name = topic.encode()
    asked = struct.pack(">iiii", -1, 1000, 1, 1)
    asked += struct.pack(f">h{len(name)}siiqi", len(name), name, 1, 0, 0, 1 << 20)
    answer = wire.ask(API_FETCH, version, asked)
    at = 4 + 4 + 2 + len(name) + 4
    partition, error, _high, size = struct.unpack_from(">ihqi", answer, at)
    assert (partition, error) == (0, 0)
    return answer[at + 18 : at + 18 + size]


def messages(data: bytes) -> list[tuple[int, int, int | None, bytes | None, bytes | None]]:
    """(offset, attributes, time, key, value) of each, those inside wrappers in place of these."""
    found, at = [], 0
    while at < len(data):
        offset, size = struct.unpack_from(">qi", data, at)
        magic, attributes = struct.unpack_from(">bb", data, at + 16)
        when = struct.unpack_from(">q", data, at + 18)[0] if magic == 1 else None
        place = at + (26 if magic == 1 else 18)
        fields = []
        for _ in range(2):
            (length,) = struct.unpack_from(">i", data, place)
            place += 4 + max(length, 0)
            fields.append(None if length < 0 else data[place - length : place])
        at += 12 + size
        if attributes & 7 == 0:
            found.append((offset, attributes, when, *fields))
            continue
        assert attributes & 7 == GZIP
        inner = messages(gzip.decompress(fields[1]))
        first = offset - inner[-1][0]  # in V1 those inside count from 0
        own = bool(attributes & 8)  # the broker's time is the wrapper's
        found += [
            (first + one[0], attributes & 8, when if own else one[2], *one[3:]) for one in inner
        ]
    return found


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("kept_in", ["0.10.0", "0.11.0"])
@pytest.mark.parametrize("codec", [0, GZIP])
def test_an_old_reader_is_told_the_times_that_a_new_one_is(broker, topic, codec, kept_in, kind):
    """Whether it is converted when it is stored or when it is read."""
    settings = {"message.format.version": kept_in, "message.timestamp.type": kind} | FOREVER
    Confluent(broker.address).create_topic(topic, 1, settings)
    before = now_ms()
    with RawConnection(broker.address) as wire:
        for offset in (0, 3):
            assert wire.produce_at(topic, 0, batch(codec), 3) == (0, offset)
        read = messages(old_fetch(wire, topic, 2))
        oldest = messages(old_fetch(wire, topic, 1))
    assert [(offset, *rest) for offset, _, _, *rest in read] == [
        (at, *KEYS_AND_VALUES[at % 3]) for at in range(6)
    ]
    own = LOG_APPEND_TIME if kind == "LogAppendTime" else CREATE_TIME
    assert {attributes & 8 for _, attributes, *_ in read} == {own}
    times = [when for _, _, when, *_ in read]
    if kind == "CreateTime":
        assert times == [T + delta for delta in DELTAS] * 2
    else:
        assert all(before <= when <= now_ms() for when in times)
    assert oldest == [(at, 0, None, *KEYS_AND_VALUES[at % 3]) for at in range(6)]


@pytest.mark.parametrize("kept", ["producer", "zstd"])
def test_what_an_old_client_says_of_time_is_what_a_new_one_reads(broker, topic, kept):
    client = Confluent(broker.address)
    client.create_topic(topic, 1, {"compression.type": kept} | FOREVER)
    with RawConnection(broker.address) as wire:
        assert wire.produce_messages(topic, 0, message(b"of V1")) == 0
        assert wire.produce_messages(topic, 0, message(b"of V0", magic=0)) == 0
        stored = stored_in(wire, topic)
    assert [one["codec"] for one in stored] == [0 if kept == "producer" else 4] * 2
    assert [(one["id"], one["epoch"], one["sequence"]) for one in stored] == [(-1, -1, -1)] * 2
    assert [(one["first_time"], one["newest"]) for one in stored] == [(T, T), (-1, -1)]
    assert [one.value for one in client.read(topic, 0)] == [b"of V1", b"of V0"]
    client.close()
