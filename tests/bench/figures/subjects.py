"""The brokers that are compared, each as its own makers would start it."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.broker import ApacheKafka, Broker, Millrace
from harness.wire import RawConnection


STOCK_JAVA = [
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
]
"""Heap and collector of Kafka's own start script."""


class StockMillrace(Millrace):
    title = "Millrace"
    shards = 0


class StockKafka(ApacheKafka):
    """Not with the small heap and the quick compiler of the tests."""

    title = "Apache Kafka"

    def command(self) -> list[str]:
        small = {"-Xmx512m", "-XX:TieredStopAtLevel=1"}
        words = [word for word in super().command() if word not in small]
        return [words[0], *STOCK_JAVA, *words[1:]]


@contextmanager
def fresh(kind: type[Broker]) -> Iterator[Broker]:
    """Not started yet, over an empty folder that goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="millrace-bench."))
    broker = kind(folder)
    try:
        yield broker
    finally:
        broker.close()
        shutil.rmtree(folder)


def start(broker: Broker) -> float:
    """Milliseconds from starting the process to its first answer to a request."""
    broker.command()  # what it prepares once, such as a formatted folder, is not part of a start
    started = time.monotonic()
    with broker.log_path.open("ab") as log:
        broker.process = subprocess.Popen(
            broker.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=broker.folder
        )
    while True:
        try:
            with RawConnection(broker.address, timeout=30) as connection:
                connection.ask_api_versions()
            return (time.monotonic() - started) * 1000
        except OSError:
            wait_a_moment(broker)


def wait_a_moment(broker: Broker) -> None:
    """Long enough not to take the processor from a starting broker."""
    try:
        code = broker.process.wait(timeout=0.001)
    except subprocess.TimeoutExpired:
        return
    raise SystemExit(f"the broker ended with {code}:\n{broker.log_tail()}")
