"""pykafka: py_kafka.py VERSION ADDRESS, where VERSION is what it shall take the broker for."""

import sys
import time
import zlib

from lines import Lines, encode
from pykafka import KafkaClient
from pykafka.common import CompressionType, OffsetType

DEADLINE_SECONDS = 50
CODECS = {
    "none": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
}


class Client(Lines):
    def __init__(self, version: str, address: str):
        self.client = KafkaClient(hosts=address, broker_version=version)
        self.wanted = None

    def _topic(self, name: str):
        return self.client.topics[name.encode()]

    def _place(self, partitions, key):
        """The partition of the record that is sent just now."""
        number = zlib.crc32(key or b"") % len(partitions) if self.wanted is None else self.wanted
        return next(one for one in partitions if one.id == number)

    def produce(self, topic, records, options) -> None:
        acks = options["acks"]
        known = self._topic(topic)
        producer = known.get_producer(
            partitioner=self._place,
            compression=CODECS[options["codec"]],
            required_acks=-1 if acks == "all" else int(acks),
            linger_ms=int(options["linger"]),
            max_request_size=int(options["largest"]),
            delivery_reports=True,
        )
        for record in records:
            self.wanted = record["partition"]
            producer.produce(record["value"], partition_key=record["key"])
        for _ in records:
            _, failure = producer.get_delivery_report(timeout=DEADLINE_SECONDS)
            if failure is not None:
                raise failure
        producer.stop()

    def _bounds(self, topic, partition) -> tuple[int, int]:
        found = self._topic(topic)
        first = found.earliest_available_offsets()[int(partition)].offset[0]
        return first, found.latest_available_offsets()[int(partition)].offset[0]

    def bounds(self, topic, partition):
        first, end = self._bounds(topic, partition)
        return [f"{first}\t{end}"]

    def read(self, topic, partition, start):
        first, end = self._bounds(topic, partition)
        first = max(first, int(start))
        if first >= end:
            return []
        known = self._topic(topic)  # whose partitions live as long as it
        place = known.partitions[int(partition)]
        consumer = known.get_simple_consumer(
            partitions=[place],
            auto_offset_reset=OffsetType.EARLIEST,
            fetch_message_max_bytes=4 << 20,
            fetch_wait_max_ms=100,
            consumer_timeout_ms=1000,
        )
        lines = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        try:
            if first > 0:
                consumer.reset_offsets([(place, first - 1)])
            while len(lines) < end - first:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"only {len(lines)} records came")
                if (found := consumer.consume()) is not None:
                    key, value = encode(found.partition_key), encode(found.value)
                    lines.append(f"{partition}\t{found.offset}\t-\t{key}\t{value}\t")
        finally:
            consumer.stop()
        return lines


if __name__ == "__main__":
    Client(*sys.argv[-2:]).serve()
