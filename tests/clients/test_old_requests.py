"""C07: zstd, and requests from before there was zstd."""

import pytest

from harness.client import UNSUPPORTED_COMPRESSION_TYPE
from harness.records import numbered_records
from harness.wire import RawConnection, codecs_of_batches, first_batch

ZSTD = 4
FETCH_BEFORE_ZSTD, FETCH_WITH_ZSTD = 9, 10
PRODUCE_BEFORE_ZSTD, PRODUCE_WITH_ZSTD = 6, 7
LINGER_MS = 300
"""So that no batch is of one record, which goes plain: compression would make it larger."""


@pytest.fixture
def wire(broker):
    with RawConnection(broker.address) as connection:
        yield connection


@pytest.mark.old_formats
def test_a_topic_of_zstd_is_refused_to_an_old_consumer(clients, wire, topic):
    clients["confluent"].create_topic(topic, 1, {"compression.type": "zstd"})
    clients["confluent"].produce(topic, numbered_records(100), codec="gzip")
    error, records = wire.fetch(topic, 0, version=FETCH_BEFORE_ZSTD)
    assert (error, records) == (UNSUPPORTED_COMPRESSION_TYPE, b"")
    error, records = wire.fetch(topic, 0, version=FETCH_WITH_ZSTD)
    assert (error, set(codecs_of_batches(records))) == (0, {ZSTD})


def test_a_producers_choice_of_zstd_is_sent_as_it_is(clients, wire, topic):
    clients["confluent"].create_topic(topic, 1)
    clients["confluent"].produce(topic, numbered_records(100), codec="zstd", linger_ms=LINGER_MS)
    for version in (FETCH_BEFORE_ZSTD, FETCH_WITH_ZSTD):
        error, records = wire.fetch(topic, 0, version=version)
        assert (error, set(codecs_of_batches(records))) == (0, {ZSTD})


def test_zstd_in_an_old_produce_request_is_refused(clients, wire, topic):
    clients["confluent"].create_topic(topic, 1)
    clients["confluent"].produce(topic, numbered_records(100), codec="zstd", linger_ms=LINGER_MS)
    # Produce takes one batch for a partition; the client may have made more.
    batch, records = first_batch(wire.fetch_batches(topic, 0))
    refused = wire.produce(topic, 0, batch, PRODUCE_BEFORE_ZSTD)
    assert refused == UNSUPPORTED_COMPRESSION_TYPE
    assert wire.produce(topic, 0, batch, PRODUCE_WITH_ZSTD) == 0
    assert clients["confluent"].bounds(topic, 0) == (0, 100 + records)
