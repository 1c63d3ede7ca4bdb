"""kafka-python 1.4: kafka_python_old.py VERSION ADDRESS, where VERSION is what it shall take the
broker for, or `auto` to let it ask."""

import sys

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka_records import Records
from lines import Failure, pairs, setting_line


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

    def describe(self, kind, name):
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        answer = self.admin.describe_configs([resource])
        for code, text, _kind, _name, settings in answer.resources:
            if code != 0:
                raise Failure(code, text)
            for setting, value, read_only, source, *_ in settings:
                yield setting_line(setting, value, source, read_only)

    def alter(self, topic, *config) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, pairs(config))
        answer = self.admin.alter_configs([resource])
        for code, text, _kind, _name in answer.resources:
            if code != 0:
                raise Failure(code, text)


if __name__ == "__main__":
    Client(*sys.argv[-2:]).serve()
