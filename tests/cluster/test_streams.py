"""Streams and aggregates of applications on several brokers: each partition's task and object is where
its log is led, reads and writes what others lead, and goes on elsewhere when its broker is killed."""

import json
import random
import shutil
import threading
from collections import Counter
from http.client import HTTPException

import confluent_kafka as ck
from confluent_kafka.admin import NewTopic
from harness.broker import PREFIX
from harness.confluent import Confluent
from harness.http import Answer, Http
from harness.streams import STEPS
from harness.tool import Outcome, run

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
STAMP = {
    "name": "stamp",
    "sources": ["words"],
    "sink": "counts",
    "steps": [{"operator": "stamp_one", "options": {}}],
}
STAMP_TWO = STEPS / "operators" / "stamp_two.so"
TALLIES = PREFIX / "tests" / "plugins" / "aggregates"
OWN_FILE = "/proc/self/cwd/next.so"
"""For each broker a file of its own folder, where it runs: as if each had a machine."""
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


def test_a_stream_is_deleted_with_its_state_at_any_broker(make_cluster):
    """One of them is the controller, which alone deletes topics."""
    cluster, streams = counting(make_cluster)
    with Sender(cluster, WORDS) as sender:
        sender.check()
    for id in cluster.brokers:
        assert streams.ask(id, "POST", "/admin/streams", COUNT).status == 201
        streams.wait_for_position(1)
        answer = streams.ask(id, "DELETE", "/admin/streams/count")
        assert answer.status == 200, answer
        assert CHANGELOG not in cluster.metadata(id=id).topics
        until(lambda: not streams.facts(), MOVED_SECONDS_MAX, "gone at all")
    cluster.end()


# ---- replaced at all ----


def replace(cluster: Cluster, id: int, verb: str, *words: object) -> Outcome:
    """By the tool, of the broker that is asked."""
    return run(verb, "--admin", cluster.brokers[id].http_address(), "replace", *words)


def replace_stamp(cluster: Cluster, id: int, file: object) -> Outcome:
    return replace(cluster, id, "stream", "stamp", "stamp_one", file)


def give_file(cluster: Cluster, *ids: int, file=STAMP_TWO) -> None:
    for id in ids:
        shutil.copy(file, cluster.brokers[id].folder / "next.so")


def stamping(make_cluster) -> tuple[Cluster, ClusterStreams]:
    cluster, _ = counting(make_cluster)
    streams = ClusterStreams(cluster, "stamp")
    assert streams.ask(1, "POST", "/admin/streams", STAMP).status == 201
    until(lambda: len(streams.tasks()) == PARTITIONS, MOVED_SECONDS_MAX, "all tasks")
    return cluster, streams


def versions(streams: ClusterStreams) -> dict[int, str]:
    return {id: fact["steps"][0]["version"] for id, fact in streams.facts().items()}


def test_an_operator_is_replaced_at_every_broker_by_one_command(make_cluster):
    cluster, streams = stamping(make_cluster)
    done = replace_stamp(cluster, 2, STAMP_TWO)
    assert done.code == 0, done.errors
    assert f"{STAMP_TWO} at brokers 1, 2, 3, also after a restart" in done.output
    assert versions(streams) == {1: "two", 2: "two", 3: "two"}
    # Each has its own copy, of what one of them has remembered.
    for id in (1, 3):
        cluster.stop(id)
        cluster.brokers[id].start()
    until(lambda: len(streams.tasks()) == PARTITIONS, MOVED_SECONDS_MAX, "all tasks")
    assert versions(streams) == {1: "two", 2: "two", 3: "two"}
    for id, fact in streams.facts().items():
        assert fact["steps"][0]["path"].startswith(str(cluster.brokers[id].folder))
    cluster.end()


def test_a_broker_that_cannot_replace_is_named_and_goes_on(make_cluster):
    """Without the file, with another one, stopped past its session: the others have replaced it."""
    cluster, streams = stamping(make_cluster)
    give_file(cluster, 1, 3)
    missing = replace_stamp(cluster, 1, OWN_FILE)
    assert missing.code == 1 and "at brokers 1, 3 until they restart" in missing.output, missing
    assert f"broker 2: {OWN_FILE}: there is no such file" in missing.errors
    assert versions(streams) == {1: "two", 2: "one", 3: "two"}
    for id in (2, 3):
        cluster.stop(id)
        cluster.brokers[id].start()
    until(lambda: len(streams.tasks()) == PARTITIONS, MOVED_SECONDS_MAX, "all tasks")
    assert versions(streams) == {1: "two", 2: "one", 3: "one"}, "what is not everywhere is not kept"

    here = replace_stamp(cluster, 2, OWN_FILE)
    assert here.code == 64 and "other brokers were not asked" in here.errors, here
    give_file(cluster, 2, file=STEPS / "operators" / "pass.so")
    another = replace_stamp(cluster, 1, OWN_FILE)
    assert another.code == 1, another
    assert f"broker 2: {OWN_FILE}: it is another file than that of broker 1" in another.errors

    with Sender(cluster, WORDS * 5) as sender:
        sender.check()
    streams.wait_for_position(len(WORDS) * 5)
    give_file(cluster, 2)
    cluster.brokers[3].pause()
    away = replace_stamp(cluster, 1, OWN_FILE)
    cluster.brokers[3].go_on()
    assert away.code == 1 and "at brokers 1, 2" in away.output, away
    assert "broker 3: it is not in the cluster any more" in away.errors
    until(
        lambda: "at brokers 1, 2, 3, also" in replace_stamp(cluster, 3, OWN_FILE).output,
        MOVED_SECONDS_MAX,
        "replaced at all",
    )
    cluster.end()


def tally_versions(cluster: Cluster) -> dict[int, str]:
    return {
        id: fact["version"]
        for id, broker in cluster.brokers.items()
        for fact in Http(broker.http_address()).get("/admin/aggregates")["aggregates"]
        if fact["name"] == "tally"
    }


def test_an_aggregate_is_replaced_at_every_broker_that_can(make_cluster):
    cluster = make_cluster(
        settings={
            "plugins.path": f'["{TALLIES}"]',
            "operators.plugins": '["consumer_groups", "tally"]',
        }
    )
    two = TALLIES / "operators" / "tally_two.so"
    give_file(cluster, 1, 2, file=two)
    partly = replace(cluster, 2, "aggregate", "tally", OWN_FILE)
    assert partly.code == 1 and "at brokers 1, 2 until one of them restarts" in partly.output, partly
    assert f"broker 3: {OWN_FILE}: there is no such file" in partly.errors
    assert tally_versions(cluster) == {1: "two", 2: "two", 3: "one"}
    done = replace(cluster, 3, "aggregate", "tally", two)
    assert done.code == 0 and "at brokers 1, 2, 3" in done.output, done
    assert tally_versions(cluster) == {1: "two", 2: "two", 3: "two"}

    def add(key: str) -> str | None:
        """As its leader answers."""
        for broker in cluster.brokers.values():
            path = f"/admin/aggregates/tally/{key}"
            answer = Http(broker.http_address()).ask("POST", path, {"command": "add 1"})
            if answer.status == 200:
                return answer.json()["answer"]
        return None

    for key in ("a", "b", "c", "d"):
        assert until(lambda key=key: add(key), MOVED_SECONDS_MAX, "its leader") == "two:1"
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
