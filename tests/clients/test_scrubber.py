"""A bit that turns over on the disk is found before somebody needs the batch, and nobody is given it for sound."""

import re

import pytest

from harness.broker import Millrace
from harness.confluent import Confluent
from harness.http import Http
from harness.records import numbered_records
from harness.tool import run

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

IN_RECORDS = 80
"""Behind the head of the first batch of a segment."""


def test_a_spoilt_batch_is_told_and_never_skipped(tmp_path):
    settings = {"log.segment.bytes": 4096, "log.scrub.interval.ms": 1000}
    broker = Millrace(tmp_path / "broker", settings)
    try:
        broker.start()
        client = Confluent(broker.address)
        client.create_topic("orders", 1)
        for at in range(10):
            client.produce("orders", numbered_records(100)[at * 10 : at * 10 + 10])
        spoilt = sorted((broker.folder / "data" / "orders-0").glob("*.log"))[1]
        first = int(spoilt.stem)
        with spoilt.open("r+b") as file:
            file.seek(IN_RECORDS)
            byte = file.read(1)[0]
            file.seek(IN_RECORDS)
            file.write(bytes([byte ^ 1]))
        line = broker.wait_for_log_line("a batch on the disk is corrupt", "orders-0", spoilt.name)
        assert " position=0 " in line and f" from={first} " in line, line
        told = Http(broker.http_address()).ask("GET", "/metrics").text
        assert re.search(r"^millrace_log_corrupt_batches 1$", told, re.MULTILINE)
        tool = ("-o", "json", "--bootstrap", broker.address)
        read = run(*tool, "consume", "orders")
        assert read.code != 0 and f"orders-0: the batch of offsets {first} to" in read.errors
        assert len(read.output.splitlines()) == first, "what is before it is shown, and no more"
        behind = run(*tool, "consume", "orders", "--from", "90")
        assert behind.code == 0 and len(behind.output.splitlines()) == 10
        assert broker.stop()[0] == 0
    finally:
        broker.close()
