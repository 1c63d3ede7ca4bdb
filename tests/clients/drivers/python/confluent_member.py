"""confluent-kafka, the librdkafka of today, as a member of a group: confluent_member.py ADDRESS

What else the tests ask of it they do in their own process."""

import sys

from confluent_kafka import Consumer, KafkaException
from lines import Failure, Lines, Seen, encode, pairs


class Client(Lines):
    def __init__(self, address: str):
        self.address = address
        self.member = None
        self.seen = Seen()

    def join(self, group, topic, *options) -> None:
        chosen = pairs(options)
        config = {
            "bootstrap.servers": self.address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
        }
        if "instance" in chosen:
            config["group.instance.id"] = chosen["instance"]
        if chosen.get("protocol") == "consumer":
            config["group.protocol"] = "consumer"
        else:
            session = int(chosen.get("session", 10_000))
            config |= {"session.timeout.ms": session, "heartbeat.interval.ms": session // 6}
            if chosen.get("assignor") == "cooperative":
                config["partition.assignment.strategy"] = "cooperative-sticky"
        self.member = Consumer(config)
        self.member.subscribe(
            [topic],
            on_assign=lambda _, partitions: self.seen.got(partitions),
            on_revoke=lambda _, partitions: self.seen.gave(partitions),
            on_lost=lambda _, partitions: self.seen.gave(partitions),
        )

    def work(self) -> bool:
        if self.member is not None:
            for message in self.member.consume(500, timeout=0.05):
                if message.error() is None:
                    place = f"{message.partition()}\t{message.offset()}"
                    self.seen.lines.append(f"read\t{place}\t{encode(message.value())}")
        return self.member is not None

    def look(self):
        return self.seen.take(self.member.assignment())

    def commit(self) -> None:
        try:
            self.member.commit(asynchronous=False)
        except KafkaException as failure:
            raise Failure(failure.args[0].code(), str(failure)) from failure

    def leave(self) -> None:
        self.member.close()
        self.member = None


if __name__ == "__main__":
    Client(sys.argv[-1]).serve()
