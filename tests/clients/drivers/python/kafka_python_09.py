"""kafka-python 0.9: kafka_python_09.py ADDRESS. Its requests are Produce 0 and Fetch 0; producers
and consumers of it choose partitions by themselves, so here is what they are made of: the client
with its requests, its encoding and its compression."""

import sys
import zlib
from itertools import groupby

from kafka import KafkaClient
from kafka.common import FetchRequest, OffsetRequest, ProduceRequest
from kafka.protocol import create_gzip_message, create_message, create_snappy_message
from lines import Lines, encode

TIMEOUT_MS = 10_000
FETCH_BYTES = 4 << 20
CHUNK_RECORDS = 200


class Client(Lines):
    def __init__(self, address: str):
        self.client = KafkaClient(address)

    def produce(self, topic, records, options) -> None:
        acks = -1 if options["acks"] == "all" else int(options["acks"])
        self.client.load_metadata_for_topics(topic)
        count = len(self.client.get_partition_ids_for_topic(topic))

        def place(record) -> int:
            own = record["partition"]
            return zlib.crc32(record["key"] or b"") % count if own is None else own

        for partition, some in groupby(sorted(records, key=place), key=place):
            pairs = [(record["value"], record["key"]) for record in some]
            for at in range(0, len(pairs), CHUNK_RECORDS):
                messages = encoded(pairs[at : at + CHUNK_RECORDS], options["codec"])
                request = ProduceRequest(topic.encode(), partition, messages)
                self.client.send_produce_request([request], acks=acks, timeout=TIMEOUT_MS)

    def _offset(self, topic, partition, time) -> int:
        asked = OffsetRequest(topic.encode(), int(partition), time, 1)
        return self.client.send_offset_request([asked])[0].offsets[0]

    def bounds(self, topic, partition):
        return [f"{self._offset(topic, partition, -2)}\t{self._offset(topic, partition, -1)}"]

    def read(self, topic, partition, start):
        first, end = self._offset(topic, partition, -2), self._offset(topic, partition, -1)
        following, lines = max(first, int(start)), []
        while following < end:
            asked = FetchRequest(topic.encode(), int(partition), following, FETCH_BYTES)
            answer = self.client.send_fetch_request([asked], max_wait_time=100)[0]
            for found in answer.messages:
                if found.offset < following:
                    continue  # of the wrapper's beginning
                following = found.offset + 1
                key, value = encode(found.message.key), encode(found.message.value)
                lines.append(f"{partition}\t{found.offset}\t-\t{key}\t{value}\t")
        return lines


def encoded(pairs, codec) -> list:
    if codec == "gzip":
        return [create_gzip_message(pairs)]
    if codec == "snappy":
        return [create_snappy_message(pairs)]
    return [create_message(value, key) for value, key in pairs]


if __name__ == "__main__":
    Client(sys.argv[-1]).serve()
