"""Every client the tests know, what it can, and the ones of a run bound to a broker."""

from dataclasses import replace

from harness import programs
from harness.client import ABILITIES, Client
from harness.confluent import Confluent
from harness.kcat import Kcat
from harness.lines import LineClient

EVERYTHING = frozenset(ABILITIES) - {"timeless"}
OLD_FORMATS = frozenset({"old-formats", "lz4-of-v0"})
BEFORE_ZSTD = ("none", "gzip", "snappy", "lz4")


class Java(LineClient):
    name = "java"
    abilities = EVERYTHING - {"alter"}

    @classmethod
    def command(cls):
        return programs.java("RecordClient", "client")


class Java28(Java):
    name = "java-2.8"

    @classmethod
    def command(cls):
        return programs.java("RecordClient", "client-2.8")


class Java010(LineClient):
    """Asks for no versions: what it sends is what 0.10 brokers had (Produce 2, Fetch 3)."""

    name = "java-0.10"
    abilities = frozenset(
        {"timestamps", "append-time", "by-time", "follow", "error-codes"} | OLD_FORMATS
    )
    codecs = BEFORE_ZSTD
    fixed_headers = ()
    sees_headers = False

    @classmethod
    def command(cls):
        return programs.java("OldRecordClient", "client-0.10")


class KafkaPython(LineClient):
    """Its AlterConfigs adds what it finds set already, and so replaces nothing."""

    name = "kafka-python"
    abilities = EVERYTHING - {"alter"}

    @classmethod
    def command(cls):
        return programs.python("kafka_python.py")


class KafkaPython14(LineClient):
    """It reads a setting's source as a truth value, so its view of settings is left out."""

    name = "kafka-python-1.4"
    abilities = frozenset(
        {
            "headers",
            "timestamps",
            "append-time",
            "by-time",
            "follow",
            "error-codes",
            "old-formats",
            "lz4-of-v0",
            "topics",
            "grow",
        }
    )
    codecs = BEFORE_ZSTD

    @classmethod
    def command(cls):
        return [*programs.old_python("kafka_python_old.py"), "auto"]


class KafkaPythonAs010(LineClient):
    """Told that the broker is a 0.10: Produce 2, Fetch 2, messages of format V1."""

    name = "kafka-python-as-0.10"
    abilities = frozenset({"timestamps", "append-time", "follow", "error-codes"} | OLD_FORMATS)
    codecs = BEFORE_ZSTD
    fixed_headers = ()
    sees_headers = False
    version = "0.10.0"

    @classmethod
    def command(cls):
        return [*programs.old_python("kafka_python_old.py"), cls.version]


class KafkaPythonAs09(KafkaPythonAs010):
    """Produce 1, Fetch 1, messages of format V0."""

    name = "kafka-python-as-0.9"
    abilities = frozenset({"timeless", "follow", "error-codes"} | OLD_FORMATS)
    version = "0.9"


class KafkaPythonAs08(KafkaPythonAs09):
    """Produce 0, Fetch 0."""

    name = "kafka-python-as-0.8"
    version = "0.8.2"


class Aiokafka(LineClient):
    name = "aiokafka"
    abilities = EVERYTHING - {"in-flight", "adjust", "synonyms", "quiet-metadata", "lz4-of-v0"}

    @classmethod
    def command(cls):
        return programs.python("aio_kafka.py")


class FranzGo(LineClient):
    name = "franz-go"
    abilities = EVERYTHING - {"in-flight", "lz4-of-v0"}

    @classmethod
    def command(cls):
        return programs.go("franz")


class Sarama(LineClient):
    name = "sarama"
    abilities = EVERYTHING - {"in-flight", "lz4-of-v0"}

    @classmethod
    def command(cls):
        return programs.go("sarama")


class KafkaGo(LineClient):
    """A reader of it has one partition, shows the sender's time always, and no bytes as null."""

    name = "kafka-go"
    abilities = EVERYTHING - {
        "idempotence",
        "in-flight",
        "append-time",
        "lz4-of-v0",
        "follow",
        "trim",
        "synonyms",
        "quiet-metadata",
    }

    def seen(self, records):
        return [
            replace(
                one,
                key=one.key or None,
                value=one.value or None,
                headers=tuple((name, value or None) for name, value in one.headers),
            )
            for one in records
        ]

    @classmethod
    def command(cls):
        return programs.go("segmentio")


class KafkaJs(LineClient):
    """The other codecs are packages of others."""

    name = "kafkajs"
    abilities = EVERYTHING - {"adjust", "in-flight"}
    codecs = ("none", "gzip")

    @classmethod
    def command(cls):
        return programs.node("kafkajs.js")


class Rust(LineClient):
    """Takes a refused AlterConfigs for done; its librdkafka lost the old formats."""

    name = "rust"
    abilities = EVERYTHING - {"adjust", "refusals", "synonyms"} - OLD_FORMATS

    @classmethod
    def command(cls):
        return programs.rust("record-client")


class OldClient(LineClient):
    """Sends and reads, no more: for what clients of these times write and read of each other."""

    abilities = OLD_FORMATS
    codecs = BEFORE_ZSTD
    fixed_headers = ()
    sees_headers = False


class Java082(OldClient):
    name = "java-0.8.2"

    @classmethod
    def command(cls):
        return programs.java("Client08", "client-0.8.2", with_groups=False)


class Java09(OldClient):
    name = "java-0.9"

    @classmethod
    def command(cls):
        return programs.java("Client09", "client-0.9", with_groups=False)


class Java011(OldClient):
    """Format V2, and a request for its versions."""

    name = "java-0.11"

    @classmethod
    def command(cls):
        return programs.java("OldRecordClient", "client-0.11")


class Java11(OldClient):
    name = "java-1.1"

    @classmethod
    def command(cls):
        return programs.java("OldRecordClient", "client-1.1")


class Java20(OldClient):
    name = "java-2.0"

    @classmethod
    def command(cls):
        return programs.java("OldRecordClient", "client-2.0")


class KafkaPython09(OldClient):
    name = "kafka-python-0.9"
    abilities = frozenset({"old-formats"})
    codecs = ("none", "gzip", "snappy")

    @classmethod
    def command(cls):
        return programs.ancient_python("kafka_python_09.py")


class PyKafka(OldClient):
    """Told that the broker is a 0.9."""

    name = "pykafka"
    abilities = frozenset({"old-formats"})
    codecs = ("none", "gzip", "snappy")

    @classmethod
    def command(cls):
        return [*programs.old_python("py_kafka.py"), "0.9.0"]


class KafkaNode(OldClient):
    name = "kafka-node"
    abilities = frozenset({"old-formats"})
    codecs = ("none", "gzip")

    @classmethod
    def command(cls):
        return programs.node("kafka_node.js")


class SaramaAs082(OldClient):
    """It sends no LZ4 to so old a broker, and cannot read that of V0."""

    name = "sarama-as-0.8.2"
    abilities = frozenset({"old-formats"})
    codecs = ("none", "gzip", "snappy")
    version = "0.8.2.0"

    @classmethod
    def command(cls):
        return [*programs.go("sarama"), cls.version]


class SaramaAs010(SaramaAs082):
    name = "sarama-as-0.10"
    codecs = BEFORE_ZSTD
    version = "0.10.0.0"


KINDS: dict[str, type[Client]] = {
    kind.name: kind
    for kind in (
        Kcat,
        Confluent,
        Java,
        KafkaPython,
        Java28,
        Java010,
        KafkaPython14,
        KafkaPythonAs010,
        KafkaPythonAs09,
        KafkaPythonAs08,
        Aiokafka,
        FranzGo,
        Sarama,
        KafkaGo,
        KafkaJs,
        Rust,
    )
}
OLD: dict[str, type[Client]] = {
    kind.name: kind
    for kind in (
        Java082,
        Java09,
        Java010,
        Java011,
        Java11,
        Java20,
        KafkaPython09,
        KafkaPython14,
        PyKafka,
        KafkaNode,
        SaramaAs082,
        SaramaAs010,
    )
}
"""Of the times of the old formats, for test_old_clients.py."""
CI = ("kcat", "confluent", "java", "kafka-python")
"""librdkafka old and new, Apache Kafka's own, and one that shares no code with either."""


def chosen(option: str) -> list[str]:
    """What --clients names: ci, all, or names."""
    names = {"ci": list(CI), "all": list(KINDS)}.get(option) or option.split(",")
    for name in names:
        assert name in KINDS, f"no client {name}; there are {', '.join(KINDS)}"
    return names


class Fleet:
    """The clients of one run and one broker; each starts when it is first asked for."""

    def __init__(self, address: str, names: list[str]):
        self.address = address
        self.names = names
        self._started: dict[str, Client] = {}

    def __getitem__(self, name: str) -> Client:
        """Also one that is not of the run, which a test may need for what its client cannot."""
        if name not in self._started:
            self._started[name] = (KINDS | OLD)[name](self.address)
        return self._started[name]

    def readers(self, codec: str = "none", *abilities: str) -> list[Client]:
        """Those that can read it, and have these abilities."""
        return [
            self[name]
            for name in self.names
            if codec in KINDS[name].codecs and KINDS[name].abilities >= set(abilities)
        ]

    def close(self) -> None:
        for client in self._started.values():
            client.close()


if __name__ == "__main__":  # python -m harness.fleet ci|all: builds what these clients consist of
    import sys

    named = chosen(sys.argv[1])
    for kind in {**KINDS, **OLD}.values():
        if kind.name in named or (sys.argv[1] == "all" and kind.name in OLD):
            kind.prepare()
