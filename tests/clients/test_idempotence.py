"""I07: the idempotent producer of every client, with one to five requests in flight."""

import pytest

from conftest import PARTITIONS
from harness.records import assert_same_and_in_order, numbered_records

RECORDS = 1000


@pytest.mark.needs("idempotence")
@pytest.mark.parametrize("in_flight", [None, 1, 2, 3, 4, 5])  # None: what the client does itself
def test_each_record_is_stored_once_and_in_order(client, topic, in_flight):
    client.create_topic(topic, PARTITIONS)
    sent = numbered_records(RECORDS, headers=client.fixed_headers)
    # Without lingering: many small batches, so that there are requests to be in flight.
    client.produce(topic, sent, idempotent=True, in_flight=in_flight, linger_ms=0)
    assert_same_and_in_order(client.seen(sent), client.read_all(topic, PARTITIONS))


@pytest.mark.needs("idempotence")
def test_a_second_producer_starts_anew(client, topic):
    client.create_topic(topic, PARTITIONS)
    sent = numbered_records(300, headers=client.fixed_headers)
    for at in range(0, 300, 100):
        client.produce(topic, sent[at : at + 100], idempotent=True)
    assert_same_and_in_order(client.seen(sent), client.read_all(topic, PARTITIONS))
