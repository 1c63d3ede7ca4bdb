"""Members of groups, each a process of its own so that it can be killed: what the tests ask of one,
and the clients that can be one."""

import base64
import contextlib
import re
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from harness import programs
from harness.confluent import Confluent
from harness.fleet import Aiokafka, FranzGo, Java, Java28, Java010, KafkaJs, KafkaPython, Sarama
from harness.lines import LineClient
from harness.records import Record

PARTITIONS = 4
SESSION_MS = 3000
"""Of members that a busy machine may keep from beating for a while: some tests bear nobody being put out."""
FAST = {
    "num.partitions": PARTITIONS,
    "offsets.topic.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.heartbeat.interval.ms": 300,
}
"""Settings of a broker whose groups do not wait long for anybody."""

SETTLE_SECONDS = 80
"""For a group to come to rest, or a member to read what there is: three session time-outs and the
start of a slow client on a busy machine."""


@dataclass
class Seen:
    """What a member has told of itself."""

    read: list[tuple[int, int, bytes]] = field(default_factory=list)
    """(partition, offset, value) in the order of arrival."""
    gave: list[set[int]] = field(default_factory=list)
    owns: set[int] = field(default_factory=set)

    def take(self, line: str) -> None:
        what, *words = line.split("\t")
        if what == "read":
            self.read.append((int(words[0]), int(words[1]), base64.b64decode(words[2])))
        elif what == "owns":
            self.owns = _numbers(words[0])
        elif what == "gave":
            self.gave.append(_numbers(words[0]))


def _numbers(text: str) -> set[int]:
    return {int(number) for number in text.split(",") if number}


class Member(ABC):
    """Joins when it is made."""

    kind: str
    protocol = "classic"
    cooperative = False
    """Can keep what it has while others give theirs."""
    static = False
    """Can have an instance id, under which it comes back as the same member."""
    commits_on_its_own = False
    patient = True
    """Goes on when there is no broker to be reached."""

    def __init__(self):
        self.seen = Seen()

    def look(self) -> Seen:
        """All that is known of it, asked again."""
        for line in self.lines():
            self.seen.take(line)
        return self.seen

    @abstractmethod
    def lines(self) -> Iterable[str]:
        """What has happened since the last time."""

    @abstractmethod
    def commit(self) -> None:
        """How far it has read."""

    @abstractmethod
    def leave(self) -> None: ...

    @abstractmethod
    def join_again(self) -> None:
        """As a new member, after it has left."""

    @abstractmethod
    def kill(self) -> None:
        """As a machine that fails: without a word to the broker."""


class LineMember(Member):
    client: type[LineClient]

    def __init__(self, address: str, group: str, topic: str, **options: object):
        super().__init__()
        self.program = self.client(address)
        words = {"protocol": self.protocol, **options}
        self.joining = ("join", group, topic, *(f"{name}={value}" for name, value in words.items()))
        self.join_again()

    def join_again(self) -> None:
        self.program._ask(*self.joining)

    def lines(self):
        return self.program._ask("look")

    def commit(self) -> None:
        self.program._ask("commit")

    def leave(self) -> None:
        self.program._ask("leave")

    def kill(self) -> None:
        if self.program.process is not None:
            self.program.process.kill()
            self.program.process.wait()
            self.program.process = None


class ConfluentProgram(LineClient):
    name = "confluent"

    @classmethod
    def command(cls):
        return programs.python("confluent_member.py")


class ConfluentMember(LineMember):
    kind, client, cooperative, static = "confluent", ConfluentProgram, True, True


class ConfluentNewMember(LineMember):
    kind, client, protocol, cooperative, static = (
        "confluent-consumer", ConfluentProgram, "consumer", True, True
    )  # fmt: skip


class JavaMember(LineMember):
    kind, client, cooperative, static = "java", Java, True, True


class JavaNewMember(LineMember):
    kind, client, protocol, cooperative, static = "java-consumer", Java, "consumer", True, True


class Java28Member(LineMember):
    kind, client, cooperative, static = "java-2.8", Java28, True, True


class Java010Member(LineMember):
    kind, client = "java-0.10", Java010


class KafkaPythonMember(LineMember):
    kind, client = "kafka-python", KafkaPython


class AiokafkaMember(LineMember):
    kind, client = "aiokafka", Aiokafka


class FranzMember(LineMember):
    kind, client, cooperative, static = "franz-go", FranzGo, True, True


class SaramaMember(LineMember):
    kind, client, static = "sarama", Sarama, True


class KafkaJsMember(LineMember):
    kind, client = "kafkajs", KafkaJs


class KcatMember(Member):
    """Its records come on standard output, what it owns on the other; it commits on its own."""

    kind = "kcat"
    commits_on_its_own = True
    patient = False

    def __init__(self, address: str, group: str, topic: str, **options: object):
        super().__init__()
        session = int(options.get("session", 10_000))
        settings = {
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
            "session.timeout.ms": session,
            "heartbeat.interval.ms": session // 6,
        }
        words = [word for pair in settings.items() for word in ("-X", "=".join(map(str, pair)))]
        words = ["-b", address, "-u", *words, "-f", r"%p\t%o\t%s\n", "-G", group, topic]
        self.command = ["kcat", *words]
        self.join_again()

    def join_again(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.command, stdout=pipe, stderr=pipe, text=True)
        self.unseen: list[str] = []
        self.owned = ""
        self.said_more = threading.Event()
        for stream, reader in ((self.process.stdout, self._record), (self.process.stderr, self._said)):
            threading.Thread(target=_each_line, args=(stream, reader), daemon=True).start()

    def _record(self, line: str) -> None:
        partition, offset, value = line.split("\t", 2)
        encoded = base64.b64encode(value.encode()).decode()
        self.unseen.append(f"read\t{partition}\t{offset}\t{encoded}")
        self.said_more.set()

    def _said(self, line: str) -> None:
        if "rebalanced" not in line:
            return
        numbers = ",".join(re.findall(r"\[(\d+)\]", line))
        assigned = ": assigned:" in line
        self.owned = numbers if assigned else ""
        self.unseen.append(f"{'got' if assigned else 'gave'}\t{numbers}")
        self.said_more.set()

    def lines(self):
        self.said_more.wait(0.05)  # so that who asks again and again leaves it time
        self.said_more.clear()
        lines, self.unseen = self.unseen, []
        return [*lines, f"owns\t{self.owned}"]

    def commit(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _each_line(stream, reader: Callable[[str], None]) -> None:
    for line in stream:
        reader(line.rstrip("\n"))


MEMBERS: dict[str, type[Member]] = {
    kind.kind: kind
    for kind in (
        ConfluentMember,
        ConfluentNewMember,
        JavaMember,
        JavaNewMember,
        KafkaPythonMember,
        KcatMember,
        Java28Member,
        Java010Member,
        AiokafkaMember,
        FranzMember,
        SaramaMember,
        KafkaJsMember,
    )
}
OF_CLIENT = {
    "confluent": ("confluent", "confluent-consumer"),
    "java": ("java", "java-consumer"),
}
"""Clients that are members in more than one way."""


def chosen(clients: list[str]) -> list[str]:
    """The members that these clients can be."""
    names = [name for client in clients for name in OF_CLIENT.get(client, (client,))]
    return [name for name in names if name in MEMBERS]


class Crew:
    """The members of one test, none of which outlives it."""

    def __init__(self, address: str, group: str, topic: str):
        self.address, self.group, self.topic = address, group, topic
        self.members: list[Member] = []
        self.gone: list[Member] = []

    def add(self, kind: type[Member], **options: object) -> Member:
        member = kind(self.address, self.group, self.topic, **options)
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        self.members.remove(member)
        self.gone.append(member)
        member.leave()

    def add_again(self, member: Member) -> Member:
        """One that has left."""
        self.gone.remove(member)
        member.join_again()
        member.seen = Seen()
        self.members.append(member)
        return member

    def kill(self, member: Member) -> None:
        self.members.remove(member)
        member.kill()

    def close(self) -> None:
        for member in self.members + self.gone:
            with contextlib.suppress(Exception):
                member.kill()

    def wait(self, done: Callable[[list[Seen]], bool], why: str) -> list[Seen]:
        """Until `done` of what all members have told."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            seen = [member.look() for member in self.members]
            if done(seen):
                return seen
            assert time.monotonic() < deadline, f"{why}: {[(one.owns, len(one.read)) for one in seen]}"

    def wait_for_shares(self, partitions: int) -> list[Seen]:
        """Every partition has one owner, and nobody has more than one partition more than another."""

        def shared(seen: list[Seen]) -> bool:
            sizes = [len(one.owns) for one in seen]
            every = sorted(number for one in seen for number in one.owns)
            return every == list(range(partitions)) and max(sizes) - min(sizes) <= 1

        return self.wait(shared, "partitions are not shared")


class NumberedTopic:
    """Sends numbered records to a topic, the same count to each partition."""

    def __init__(self, address: str, name: str):
        self.client, self.name = Confluent(address), name
        self.client.create_topic(name, PARTITIONS)
        self.sent: set[bytes] = set()

    def send(self, count: int) -> set[bytes]:
        values = {b"%d" % number for number in range(len(self.sent), len(self.sent) + count)}
        records = [
            Record(None, value, partition=at % PARTITIONS) for at, value in enumerate(sorted(values))
        ]
        self.client.produce(self.name, records)
        self.sent |= values
        return values

    def close(self) -> None:
        self.client.close()


def values(seen: list[Seen]) -> list[bytes]:
    return [value for one in seen for _, _, value in one.read]


def read_all(crew: Crew, topic: NumberedTopic, before: list[bytes] = ()) -> list[bytes]:
    """Waits until what was sent has been read; returns it, each as often as it came."""

    def complete(seen: list[Seen]) -> bool:
        return topic.sent <= {*values(seen), *before}

    return [*values(crew.wait(complete, "not all was read")), *before]
