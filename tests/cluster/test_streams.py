"""Streams and aggregates of applications on several brokers: each partition's task and object is where
its log is led, reads and writes what others lead, and goes on elsewhere when its broker is killed."""

import json
import random
import threading
from collections import Counter
from http.client import HTTPException

import confluent_kafka as ck
from confluent_kafka.admin import NewTopic
from harness.broker import PREFIX
from harness.confluent import Confluent
from harness.http import Answer, Http
from harness.streams import STEPS

from parts.cluster import Cluster
from parts.waiting import until

PARTITIONS = 3
WORDS = [b"word-%d" % n for n in range(200)]
RECORDS = 30_000
BURST = 200
BURST_PAUSE_SECONDS = 0.05
CHANGELOG = "__stream_count_changelog"
MOVED_SECONDS_MAX = 90
COUNT = {
    "name": "count",
    "sources": ["words"],
    "sink": "counts",
    "steps": [{"operator": "words", "options": {}}],
}
EXAMPLES = PREFIX / "tests" / "plugins" / "examples"
"""operators/bank.so: that of sdk/examples."""
ACCOUNTS = ["ann", "bob", "cyd"]
DEPOSITS_BETWEEN = 100
SERVICE_UNAVAILABLE = 503


class Sender(threading.Thread):
    """Sends words, each under itself as key, a few thousand in a second."""

    def __init__(self, cluster: Cluster, words: list[bytes]):
        super().__init__()
        self.words = words
        self.failed: list[str] = []
        self._ending = threading.Event()
        self._producer = ck.Producer(
            {
                "bootstrap.servers": cluster.addresses,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
            }
        )

    def __enter__(self) -> "Sender":
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self._ending.set()
        self.join()

    def run(self) -> None:
        def told(error, _message) -> None:
            if error:
                self.failed.append(str(error))

        for at, word in enumerate(self.words):
            self._producer.produce("words", word, word, callback=told)
            if at % BURST == 0:
                self._producer.poll(0)
                if self._ending.wait(BURST_PAUSE_SECONDS):
                    return
        self._producer.flush(MOVED_SECONDS_MAX)

    def check(self) -> None:
        self.join()
        assert not self.failed, self.failed[:3]


class ClusterStreams:
    """A stream as the brokers that run tell of it, each of its own tasks."""

    def __init__(self, cluster: Cluster, name: str):
        self.cluster = cluster
        self.name = name

    def ask(self, id: int, method: str, path: str, body: object = None) -> Answer:
        return Http(self.cluster.brokers[id].http_address()).ask(method, path, body)

    def facts(self) -> dict[int, dict]:
        """By broker; of those that know it."""
        found = {}
        for id, broker in self.cluster.brokers.items():
            if not broker.running:
                continue
            answer = self.ask(id, "GET", f"/admin/streams/{self.name}")
            if answer.status == 200:
                found[id] = answer.json()
                assert found[id]["state"] != "failed", found[id]
        return found

    def tasks(self) -> dict[int, tuple[int, dict]]:
        """By partition: the broker that runs its task, and the task."""
        return {
            task["partition"]: (id, task)
            for id, fact in self.facts().items()
            for task in fact["tasks"]
            if task["state"] == "running"
        }

    def position(self) -> int:
        return sum(
            source["position"] for _, task in self.tasks().values() for source in task["sources"]
        )

    def wait_for_position(self, position: int) -> None:
        until(
            lambda: self.position() >= position,
            MOVED_SECONDS_MAX,
            f"position {position} of {self.name}",
        )

    def wait_for_task(self, partition: int, broker: int) -> dict:
        def there() -> dict | None:
            id, task = self.tasks().get(partition, (None, None))
            return task if id == broker else None

        return until(there, MOVED_SECONDS_MAX, f"task {partition} at broker {broker}")


def make_topic(cluster: Cluster, topic: str, leader: int) -> None:
    """All of its partitions are led by one broker, so that most tasks are at others."""
    others = [id for id in cluster.brokers if id != leader]
    admin = cluster.admin()
    wanted = NewTopic(topic, PARTITIONS, replica_assignment=[[leader, *others]] * PARTITIONS)
    admin.create_topics([wanted], operation_timeout=30)[topic].result(60)
    for partition in range(PARTITIONS):
        cluster.wait_for_in_sync(topic, partition, len(cluster.brokers))


def counts_of(cluster: Cluster) -> Counter:
    """The last that was said of each word; outputs may repeat, and go back for a while."""
    client = Confluent(cluster.addresses)
    counts = Counter()
    for partition in range(PARTITIONS):
        for record in client.read("counts", partition):
            counts[record.key] = int(record.value)
    client.close()
    return counts


def kill_task(cluster: Cluster, streams: ClusterStreams, partition: int) -> int:
    """The broker of a task is killed; the task goes on where its changelog is led then."""
    leader = cluster.kill_leader(CHANGELOG, partition)
    task = streams.wait_for_task(partition, cluster.leader(CHANGELOG, partition))
    assert task["restored_records"] > 0, task
    return leader


def counting(make_cluster) -> tuple[Cluster, ClusterStreams]:
    """Three brokers that can run COUNT."""
    cluster = make_cluster(settings={"plugins.path": f'["{STEPS}"]'})
    make_topic(cluster, "words", 1)
    make_topic(cluster, "counts", 2)
    return cluster, ClusterStreams(cluster, "count")


def test_counts_are_exact_when_brokers_of_their_tasks_are_killed(make_cluster):
    cluster, streams = counting(make_cluster)
    answer = streams.ask(3, "POST", "/admin/streams", COUNT)
    assert answer.status == 201, answer
    until(lambda: len(streams.tasks()) == PARTITIONS, MOVED_SECONDS_MAX, "all tasks")
    for partition, (id, _) in streams.tasks().items():
        assert id == cluster.leader(CHANGELOG, partition), "where its changelog is led"

    sent = random.Random(6).choices(WORDS, k=RECORDS)
    with Sender(cluster, sent) as sender:
        streams.wait_for_position(RECORDS // 5)
        killed = kill_task(cluster, streams, 0)
        streams.wait_for_position(2 * RECORDS // 5)
        cluster.brokers[killed].start()
        cluster.wait_until_healed(CHANGELOG)
        killed = kill_task(cluster, streams, 1)
        streams.wait_for_position(3 * RECORDS // 5)
        cluster.brokers[killed].start()
        sender.check()
    streams.wait_for_position(RECORDS)
    assert counts_of(cluster) == Counter(sent)
    cluster.end()


def test_a_stream_is_the_same_at_every_broker(make_cluster):
    """Declared, stopped and started at one of them each."""
    cluster, streams = counting(make_cluster)
    assert streams.ask(1, "POST", "/admin/streams", COUNT).status == 201

    def is_everywhere(state: str) -> bool:
        facts = streams.facts()
        return len(facts) == 3 and {fact["state"] for fact in facts.values()} == {state}

    until(lambda: is_everywhere("running"), MOVED_SECONDS_MAX, "running at all")
    assert streams.ask(2, "POST", "/admin/streams/count/stop").status == 200
    until(lambda: is_everywhere("stopped"), MOVED_SECONDS_MAX, "stopped at all")
    assert streams.ask(3, "POST", "/admin/streams/count/start").status == 200
    until(lambda: is_everywhere("running"), MOVED_SECONDS_MAX, "running again")
    cluster.end()


class Bank:
    """The accounts of sdk/examples, asked at whichever broker leads them."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.versions = dict.fromkeys(ACCOUNTS, 0)
        self.balances = dict.fromkeys(ACCOUNTS, 0)

    def _ask(self, method: str, account: str, body: object = None) -> Answer:
        """The answer of who leads it, for now; others say that they do not."""
        for broker in self.cluster.brokers.values():
            if not broker.running:
                continue
            try:
                answer = Http(broker.http_address()).ask(
                    method, f"/admin/aggregates/accounts/{account}", body
                )
            except (OSError, HTTPException):
                continue  # killed meanwhile
            if answer.status != SERVICE_UNAVAILABLE:
                return answer
        return Answer(SERVICE_UNAVAILABLE, {}, "nobody leads it")

    def deposit(self, account: str, cents: int) -> None:
        """Once: one whose answer was lost is found by its version."""
        command = {
            "command": f"deposit {cents}",
            "headers": {"millrace-expected-version": str(self.versions[account])},
        }

        def done() -> bool:
            answer = self._ask("POST", account, command)
            if answer.status == 200:
                return True
            told = json.loads(answer.text) if answer.text.startswith("{") else {}
            if told.get("error") == "INVALID_UPDATE_VERSION":
                return f"has version {self.versions[account] + 1}" in told["message"]
            assert answer.status == SERVICE_UNAVAILABLE, answer
            return False

        until(done, MOVED_SECONDS_MAX, f"a deposit of {account}")
        self.versions[account] += 1
        self.balances[account] += cents

    def balance(self, account: str) -> int:
        def told() -> Answer | None:
            answer = self._ask("GET", account)
            return answer if answer.status == 200 else None

        return int(until(told, MOVED_SECONDS_MAX, f"the balance of {account}").json()["answer"])


def test_an_applications_entities_go_on_when_their_broker_is_killed(make_cluster):
    """Every deposit counts once, in the balance and in the version."""
    cluster = make_cluster(
        settings={
            "plugins.path": f'["{EXAMPLES}"]',
            "operators.plugins": '["consumer_groups", "bank"]',
        }
    )
    bank = Bank(cluster)
    chance = random.Random(7)
    for _ in range(3):
        for _ in range(DEPOSITS_BETWEEN):
            bank.deposit(chance.choice(ACCOUNTS), chance.randrange(1, 1000))
        killed = cluster.leader("accounts")
        cluster.kill(killed)  # nobody waits: the next deposit finds the new leader
        for _ in range(DEPOSITS_BETWEEN):
            bank.deposit(chance.choice(ACCOUNTS), chance.randrange(1, 1000))
        cluster.brokers[killed].start()
        cluster.wait_until_healed("accounts")
    assert {account: bank.balance(account) for account in ACCOUNTS} == bank.balances
    cluster.end()
