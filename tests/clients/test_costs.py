"""What requests cost the broker of the processor, against bounds several times what was measured: `tests/bench/compare`
tells how much it is, this that it has not become a multiple. Of the release build."""

import contextlib
import os
from pathlib import Path

import pytest

from harness.batches import last_offset, record_batch
from harness.confluent import Confluent
from harness.wire import API_PRODUCE, RawConnection, produce_body, request_frame

pytestmark = [pytest.mark.millrace, pytest.mark.slow, pytest.mark.alone]

CONNECTIONS, DEPTH, ROUNDS = 8, 64, 100
SMALL_US_MAX = 25
"""A request of 100 B; with eight connections 9 were measured one at a time, fewer where many come together."""
BYTES = 512 << 20
BATCH_RECORDS, RECORD_BYTES = 900, 1024
PRODUCED_SECONDS_PER_GB_MAX = 2
"""0.4 were measured."""
FETCHED_SECONDS_PER_GB_MAX = 1


class Processor:
    """CPU seconds of a broker since this was made."""

    def __init__(self, broker):
        self.stat = Path(f"/proc/{broker.process.pid}/stat")
        self.before = self._now()

    def _now(self) -> float:
        fields = self.stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def seconds(self) -> float:
        return self._now() - self.before


def test_small_requests_cost_little(own_broker, topic):
    Confluent(own_broker.address).create_topic(topic, 1)
    body = produce_body(topic, {0: record_batch([bytes(100)])}, acks=-1)
    burst = request_frame(API_PRODUCE, 3, body) * DEPTH
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(RawConnection(own_broker.address)) for _ in range(CONNECTIONS)
        ]
        used = Processor(own_broker)
        for _ in range(ROUNDS):
            for one in connections:
                one.send(burst)
            for one in connections:
                for _ in range(DEPTH):
                    assert one.receive_produced(topic, 0)[0] == 0
        each_us = used.seconds() * 1e6 / (ROUNDS * CONNECTIONS * DEPTH)
    print(f"{each_us:.1f} us a request")
    assert each_us < SMALL_US_MAX


def test_bytes_cost_little(own_broker, topic):
    """Written, and read back from memory."""
    Confluent(own_broker.address).create_topic(topic, 1)
    batch = record_batch([os.urandom(RECORD_BYTES)] * BATCH_RECORDS)
    count = BYTES // len(batch)
    with RawConnection(own_broker.address) as wire:
        used = Processor(own_broker)
        for _ in range(count):
            assert wire.produce(topic, 0, batch, 3) == 0
        produced = used.seconds() / (count * len(batch)) * 1e9
        used, read, offset = Processor(own_broker), 0, 0
        while offset < count * BATCH_RECORDS:
            records = wire.fetch_batches(topic, 0, offset)
            read += len(records)
            offset = last_offset(records) + 1
        fetched = used.seconds() / read * 1e9
    print(f"{produced:.2f} CPU s a GB produced, {fetched:.2f} fetched")
    assert read == count * len(batch)
    assert produced < PRODUCED_SECONDS_PER_GB_MAX
    assert fetched < FETCHED_SECONDS_PER_GB_MAX
