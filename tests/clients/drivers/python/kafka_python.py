"""kafka-python of today: kafka_python.py ADDRESS"""

import re
import sys

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigSourceType
from kafka.structs import TopicPartition
from kafka_records import Records
from lines import Failure, pairs, setting_line


class Client(Records):
    def __init__(self, address: str):
        super().__init__(address)
        self.admin = KafkaAdminClient(**self.common)

    def create(self, topic, partitions, *config) -> None:
        wanted = {"num_partitions": int(partitions), "configs": pairs(config)}
        self.admin.create_topics({topic: wanted})

    def delete(self, topic) -> None:
        self.admin.delete_topics([topic])

    def list(self):
        return self.admin.list_topics()

    def partitions(self, topic):
        found = self.admin.describe_topics([topic])[0]
        if found["error_code"] != 0:
            raise Failure(found["error_code"], topic)
        return [len(found["partitions"])]

    def grow(self, topic, partitions) -> None:
        self.admin.create_partitions({topic: int(partitions)})

    def trim(self, topic, partition, offset):
        place = TopicPartition(topic, int(partition))
        return [self.admin.delete_records({place: int(offset)})[place]["low_watermark"]]

    def describe(self, kind, name):
        found = self.admin.describe_configs(
            [ConfigResource(kind, name)], include_synonyms=True, config_filter="all"
        )
        for setting, about in found[kind][name].items():
            synonyms = [
                (one["name"], one["value"], ConfigSourceType[one["source"]].value)
                for one in about["synonyms"]
            ]
            source = ConfigSourceType[about["config_source"]].value
            yield setting_line(setting, about["value"], source, about["read_only"], synonyms)

    def adjust(self, topic, operation, name, value) -> None:
        resource = ConfigResource("topic", topic, {name: (operation.upper(), value)})
        answer = self.admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
        if (said := answer["topic"][topic]) != "OK":
            code = re.search(r"\[Error (-?\d+)\]", said)
            raise Failure(int(code[1]) if code else -1, said)


if __name__ == "__main__":
    Client(sys.argv[-1]).serve()
