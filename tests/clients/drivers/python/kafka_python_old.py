"""kafka-python 1.4: kafka_python_old.py VERSION ADDRESS, where VERSION is what it shall take the
broker for, or `auto` to let it ask."""

import sys

from kafka import KafkaAdminClient
from kafka.admin import NewPartitions, NewTopic
from kafka_records import Records
from lines import pairs


class Client(Records):
    def __init__(self, version: str, address: str):
        known = None if version == "auto" else tuple(map(int, version.split(".")))
        super().__init__(address, known)
        self.admin = KafkaAdminClient(**self.common) if known is None else None

    def partitions(self, topic):
        return [len(self.consumer.partitions_for_topic(topic))]

    def create(self, topic, partitions, *config) -> None:
        self.admin.create_topics([NewTopic(topic, int(partitions), 1, topic_configs=pairs(config))])

    def delete(self, topic) -> None:
        self.admin.delete_topics([topic])

    def list(self):
        return self.consumer.topics()

    def grow(self, topic, partitions) -> None:
        self.admin.create_partitions({topic: NewPartitions(int(partitions))})


if __name__ == "__main__":
    Client(*sys.argv[-2:]).serve()
