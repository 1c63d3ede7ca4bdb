"""Records at rest do not pass through the broker's memory: what it asks of the kernel is counted by
strace."""

import os
import re
import signal
import subprocess

import pytest

from harness.confluent import Confluent
from harness.records import Record

pytestmark = pytest.mark.millrace

RECORDS, RECORD_BYTES = 2000, 10_000
CALL = re.compile(r"(?:<\.\.\. )?(sendfile|pwritev2?|pwrite64)\b.*= (\d+)$")


@pytest.fixture
def traced(own_broker, tmp_path):
    """The calls of the broker, as (name, bytes), once the tracer has let go of it."""
    log = tmp_path / "strace.log"
    tracer = subprocess.Popen(
        [
            *("strace", "-f", "-e", "trace=sendfile,pwritev,pwritev2,pwrite64"),
            *("-o", str(log), "-p", str(own_broker.process.pid)),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    threads = len(os.listdir(f"/proc/{own_broker.process.pid}/task"))
    attached = tracer.stderr.readline()
    assert "attached" in attached and str(threads) in attached, attached

    def calls() -> list[tuple[str, int]]:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(timeout=10)
        found = map(CALL.search, log.read_text().splitlines())
        return [(match[1], int(match[2])) for match in found if match]

    yield calls
    if tracer.poll() is None:
        tracer.kill()
        tracer.wait()


def test_fetch_sends_files_and_produce_gathers(own_broker, topic, traced):
    client = Confluent(own_broker.address)
    client.create_topic(topic, 1)
    records = [Record(b"k", os.urandom(RECORD_BYTES)) for _ in range(RECORDS)]
    client.produce(topic, records)
    assert len(client.read(topic, 0)) == RECORDS

    calls = traced()
    stored = RECORDS * RECORD_BYTES
    sent_as_files = sum(count for name, count in calls if name == "sendfile")
    written = [count for name, count in calls if name.startswith("pwritev")]
    assert sent_as_files >= stored
    assert sum(written) >= stored
    # Whole batches at a time: headers and bodies of a request go in one gathered write.
    assert len(written) < RECORDS / 5
