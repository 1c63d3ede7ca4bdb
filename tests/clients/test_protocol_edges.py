"""Edges of the protocol that clients really meet: scenarios P01 to P17."""

import os
import struct

import pytest

from harness.broker import Millrace
from harness.fetch_session import BY_ID, BY_NAME, NO_ID, fetch, topic_id
from harness.records import Record
from harness.wire import API_API_VERSIONS, API_PRODUCE, RawConnection

API_METADATA, API_SASL_HANDSHAKE = 3, 17
UNSUPPORTED_VERSION, UNKNOWN_TOPIC_ID, FETCH_SESSION_TOPIC_ID_ERROR = 35, 100, 106


@pytest.fixture
def wire(broker):
    with RawConnection(broker.address) as connection:
        yield connection


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\0\5test\0021\0", id="that-of-version-3"),
        pytest.param(b"", id="none", marks=pytest.mark.millrace),
        pytest.param(b"\xff" * 50, id="noise", marks=pytest.mark.millrace),
    ],
)
def test_P01_api_versions_of_the_future_is_answered_in_version_0(wire, body):
    header = struct.pack(">hhih4s", API_API_VERSIONS, 99, 5, 4, b"test")
    wire.send(struct.pack(">i", len(header + body)) + header + body)
    answer = wire.receive_frame()
    correlation, error, count = struct.unpack_from(">ihi", answer)
    assert (correlation, error) == (5, UNSUPPORTED_VERSION)
    assert len(answer) == 10 + 6 * count, "the layout of version 0, without tags"
    rows = {key: (low, high) for key, low, high in struct.iter_unpack(">hhh", answer[10:])}
    assert rows[API_API_VERSIONS] == wire.ask_api_versions(6)[API_API_VERSIONS]
    assert rows[API_API_VERSIONS][0] == 0 and rows[API_API_VERSIONS][1] >= 3


def test_P03_an_unknown_api_ends_its_connection_behind_what_came_before(broker, wire):
    metadata = struct.pack(">ihhih4si", 18, API_METADATA, 1, 11, 4, b"test", 0)
    unknown = struct.pack(">ihhih4s", 14, 9999, 0, 12, 4, b"test")
    with RawConnection(broker.address) as bad:
        bad.send(metadata + unknown + metadata)
        assert struct.unpack_from(">i", bad.receive_frame()) == (11,)
        assert bad.closed_by_broker()
        broker.wait_for_log_line(f":{bad.port}")
        assert 9999 not in wire.ask_api_versions(1)
        lines = [line for line in broker.log_text().splitlines() if f":{bad.port}" in line]
        assert len(lines) == 1 or not isinstance(broker, Millrace), lines


def test_P05_unknown_topic_ids_are_told_by_partition(clients, wire, topic):
    kept, gone = f"{topic}-kept", f"{topic}-gone"
    for name in (kept, gone):
        clients["confluent"].create_topic(name, 1)
    kept_id, gone_id = topic_id(wire, kept), topic_id(wire, gone)
    assert NO_ID not in (kept_id, gone_id)
    clients["confluent"].delete_topic(gone)
    for unknown in (NO_ID, os.urandom(16), gone_id):
        fetched = fetch(wire, BY_ID, {unknown: [0], kept_id: [0]}, epoch=-1)
        assert fetched.error == 0
        assert fetched.errors == {(unknown, 0): UNKNOWN_TOPIC_ID, (kept_id, 0): 0}


def test_P07_exactly_the_partitions_of_a_session_are_served(clients, wire, topic):
    clients["confluent"].create_topic(topic, 3)
    for partition in range(3):
        clients["confluent"].produce(topic, [Record(b"key", b"value", partition=partition)])

    def served(fetched) -> set[int]:
        assert fetched.error == 0 and set(fetched.errors.values()) <= {0}
        return {partition for (_, partition), records in fetched.records.items() if records}

    opened = fetch(wire, BY_NAME, {topic: [0, 1, 2]})
    assert served(opened) == {0, 1, 2} and opened.session
    session = opened.session
    assert served(fetch(wire, BY_NAME, {}, session, 1, {topic: [0, 2]})) == {1}
    assert served(fetch(wire, BY_NAME, {}, session, 2)) == {1}
    assert served(fetch(wire, BY_NAME, {topic: [2]}, session, 3)) == {1, 2}
    by_id = fetch(wire, BY_ID, {topic_id(wire, topic): [0]}, session, 4)
    assert (by_id.error, by_id.errors) == (FETCH_SESSION_TOPIC_ID_ERROR, {})


def test_P15_the_newest_sasl_handshake_is_the_one_of_tokens_in_frames(wire):
    """A client picks the newest that it is shown; a broker without logins may show none."""
    assert wire.ask_api_versions().get(API_SASL_HANDSHAKE, (0, 1))[1] == 1


def test_P17_the_oldest_produce_is_offered(wire):
    """Without it librdkafka takes the broker for one that knows no codec."""
    assert wire.ask_api_versions()[API_PRODUCE][0] == 0
