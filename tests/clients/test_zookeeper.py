"""A broker whose metadata is in ZooKeeper: as with standalone while all is well, and what it says and
does when not."""

import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import maven
from harness.broker import Millrace
from harness.client import DEADLINE_SECONDS
from harness.tool import Tool
from harness.tool import run as run_tool
from harness.zookeeper import ZooKeeper, ensemble

pytestmark = pytest.mark.millrace

BAD_DATA, UNAVAILABLE, CANNOT_CREATE, BAD_CONFIG = 65, 69, 73, 78
REFUSAL_SECONDS_MAX = 120
SESSION_MS_MAX = 10_000
"""So long that a start which waits for its end is seen to."""


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    """Shared; every test has a chroot of its own."""
    one = ZooKeeper(tmp_path_factory.mktemp("zookeeper") / "one").start()
    yield one
    one.close()


@pytest.fixture
def own_zookeeper(tmp_path):
    one = ZooKeeper(tmp_path / "zookeeper").start()
    yield one
    one.close()


@pytest.fixture
def make(tmp_path):
    """A broker of the given settings; the folder is that of the first unless named."""
    made = []

    def one(address: str, chroot: str, *, folder: str = "broker", id: int = 1, **more: object):
        options = {name.replace("_", "-"): value for name, value in more.items()}
        broker = Millrace(
            tmp_path / folder,
            settings={
                "broker.id": id,
                "coordination.plugin": "zookeeper",
                "coordination.connect": address + chroot,
                **{f"coordination.{name}": value for name, value in options.items()},
            },
        )
        made.append(broker)
        return broker

    yield one
    for broker in made:
        broker.close()


def refused(broker: Millrace) -> tuple[int, str]:
    """Its exit code, which must come by itself, and its log."""
    with broker.log_path.open("ab") as log:
        done = subprocess.run(
            broker.command(), stdin=subprocess.DEVNULL, stderr=log, timeout=REFUSAL_SECONDS_MAX
        )
    return done.returncode, broker.log_text()


def values(broker: Millrace, topic: str) -> str:
    return Tool(broker.address).text("consume", topic)


def use(broker: Millrace, topic: str) -> None:
    tool = Tool(broker.address)
    tool.text("topic", "create", topic, "--partitions", 3)
    tool.text("produce", topic, stdin="a\nb\nc\n")


def test_topics_outlive_stops_and_kills(zookeeper, make):
    broker = make(zookeeper.address, "/lives", session_timeout=SESSION_MS_MAX).start()
    use(broker, "t")
    assert broker.stop()[0] == 0
    broker.start()
    assert sorted(values(broker, "t").split()) == ["a", "b", "c"]
    broker.kill()
    started = time.monotonic()
    broker.start()
    took = time.monotonic() - started
    assert took < SESSION_MS_MAX / 1000, "the session of the killed one is ended, not waited for"
    broker.wait_for_log_line("the session of the broker that died here is ended now")
    assert sorted(values(broker, "t").split()) == ["a", "b", "c"]
    Tool(broker.address).text("topic", "delete", "t")
    assert broker.stop()[0] == 0
    assert zookeeper.children("/lives/brokers/topics") == []


def test_the_layout_is_kafkas(zookeeper, make):
    broker = make(zookeeper.address, "/layout").start()
    Tool(broker.address).text("topic", "create", "t", "--partitions", 2)
    said = zookeeper.run(
        "get /layout/brokers/topics/t",
        "get /layout/brokers/topics/t/partitions/1/state",
        "get /layout/brokers/ids/1",
        "get /layout/controller",
        "get /layout/cluster/id",
    )
    for part in ('"partitions":{"0":[1],"1":[1]}', '"leader":1', '"endpoints":', '"brokerid":1', '"id":"'):
        assert part in said
    assert broker.stop()[0] == 0
    assert zookeeper.children("/layout/brokers/ids") == []


def old_configs(zookeeper, chroot: str, *words: object) -> subprocess.CompletedProcess:
    """What `kafka-configs --zookeeper` of the last Kafka that had it says of brokers."""
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", maven.classpath("broker-3.9")]
    command += ["kafka.admin.ConfigCommand", "--zookeeper", zookeeper.address + chroot]
    command += ["--entity-type", "brokers", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=REFUSAL_SECONDS_MAX)


@pytest.mark.fault
def test_a_tool_of_zookeepers_time_reads_it(zookeeper, make):
    """It knows the broker by its registration, and leaves the settings of one that runs to it; those of one that has
    stopped are where it looks for them, and what it changes is taken up."""
    broker = make(zookeeper.address, "/old-tool").start()
    tool = Tool(broker.address)
    tool.text("config", "set", "--broker", 1, "log.cleaner.threads=2")
    refused_one = old_configs(zookeeper, "/old-tool", "--describe", "--entity-name", 1)
    assert "broker 1 is running" in refused_one.stderr, refused_one
    assert broker.stop()[0] == 0
    told = old_configs(zookeeper, "/old-tool", "--describe", "--entity-name", 1)
    assert "log.cleaner.threads=2" in told.stdout, told
    change = ("--alter", "--entity-name", 1, "--add-config", "log.cleaner.threads=3")
    taken = old_configs(zookeeper, "/old-tool", *change)
    assert taken.returncode == 0, taken
    broker.start()
    assert re.search(
        r"log\.cleaner\.threads\D+3\b", tool.text("config", "get", "--broker", 1, "log.cleaner.threads")
    )


def test_a_topic_larger_than_a_packet(zookeeper, make):
    """3,000 partitions are over 1 MiB of znodes: made, grown, read back and deleted."""
    broker = make(zookeeper.address, "/large").start()
    tool = Tool(broker.address)
    tool.text("topic", "create", "large", "--partitions", 3000)
    assert len(zookeeper.children("/large/brokers/topics/large/partitions")) == 3000
    assert broker.stop()[0] == 0
    broker.start()
    tool.text("topic", "delete", "large")
    tool.text("topic", "create", "large", "--partitions", 1)
    assert zookeeper.children("/large/brokers/topics/large/partitions") == ["0"]


def test_a_start_waits_for_zookeeper(tmp_path, make):
    late = ZooKeeper(tmp_path / "late")
    broker = make(late.address, "/x")
    try:
        log = broker.log_path.open("ab")
        broker.process = subprocess.Popen(broker.command(), stdin=subprocess.DEVNULL, stderr=log)
        broker.wait_for_log_line("waiting for ZooKeeper", late.address)
        late.start()
        broker.wait_for_log_line("ready")
    finally:
        log.close()
        broker.close()
        late.close()


def test_a_start_gives_up_in_time(make):
    code, said = refused(make("127.0.0.1:1", "/x", start_timeout=1500))
    assert code == UNAVAILABLE, said
    assert "ZooKeeper at 127.0.0.1:1 cannot be reached" in said


def test_wrong_settings_are_refused(make):
    for more, part in (
        ({"chroot": "/a//b"}, "/a//b"),
        ({"tls": "true"}, "without TLS"),
        ({"acl": "owner"}, "set digest"),
        ({"digest": "nobody"}, "user:password"),
    ):
        code, said = refused(make("127.0.0.1:1", more.pop("chroot", "/x"), **more))
        assert code == BAD_CONFIG, said
        assert part in said


def test_a_second_broker_of_the_id_is_refused(zookeeper, make):
    first = make(zookeeper.address, "/twins").start()
    use(first, "t")
    code, said = refused(make(zookeeper.address, "/twins", folder="other", session_timeout=1000))
    assert code == CANNOT_CREATE, said
    assert "broker.id = 1 runs already" in said and str(first.folder) in said
    assert sorted(values(first, "t").split()) == ["a", "b", "c"]
    assert first.stop()[0] == 0


def test_a_copy_of_the_folder_does_not_end_the_session_of_its_owner(zookeeper, make, tmp_path):
    first = make(zookeeper.address, "/copies").start()
    shutil.copytree(first.folder / "data", tmp_path / "copy" / "data")
    code, said = refused(make(zookeeper.address, "/copies", folder="copy", session_timeout=1000))
    assert code == CANNOT_CREATE, said
    assert first.stop()[0] == 0


def test_the_data_of_another_cluster_is_refused(zookeeper, make):
    one = make(zookeeper.address, "/one").start()
    use(one, "t")
    assert one.stop()[0] == 0
    other = make(zookeeper.address, "/other", folder="other").start()
    assert other.stop()[0] == 0
    code, said = refused(make(zookeeper.address, "/other"))
    assert code == CANNOT_CREATE, said
    assert "cluster" in said and str(one.folder / "data") in said
    one.start()
    assert sorted(values(one, "t").split()) == ["a", "b", "c"]


def test_a_topic_with_a_damaged_znode_is_named_and_left_out(zookeeper, make):
    broker = make(zookeeper.address, "/damaged").start()
    use(broker, "t")
    use(broker, "u")
    assert broker.stop()[0] == 0
    said = zookeeper.run("get /damaged/brokers/topics/t")
    sound = next(line for line in said.splitlines() if line.startswith("{"))
    zookeeper.run("set /damaged/brokers/topics/t garbage")
    broker.start()
    broker.wait_for_log_line("a topic is left out", "/brokers/topics/t", "garbage")
    assert sorted(values(broker, "u").split()) == ["a", "b", "c"]
    refused_one = run_tool("--bootstrap", broker.address, "topic", "create", "t", "--partitions", 1)
    assert refused_one.code != 0 and "cannot be read" in refused_one.errors
    assert broker.stop()[0] == 0
    zookeeper.run(f"set /damaged/brokers/topics/t {sound}")
    broker.start()
    assert sorted(values(broker, "t").split()) == ["a", "b", "c"], "nothing was removed"


def test_a_cluster_whose_id_is_damaged_is_named(zookeeper, make):
    broker = make(zookeeper.address, "/no-id").start()
    assert broker.stop()[0] == 0
    zookeeper.run("set /no-id/cluster/id garbage")
    code, said = refused(broker)
    assert code == BAD_DATA, said
    assert "/cluster/id" in said and "garbage" in said


def test_a_foreign_znode_does_no_harm(zookeeper, make):
    broker = make(zookeeper.address, "/foreign").start()
    use(broker, "t")
    assert broker.stop()[0] == 0
    zookeeper.run(
        "create /foreign/brokers/topics/folder",
        "create /foreign/brokers/ids/somebody text",
        "create /foreign/brokers/topics/t/notes text",
    )
    broker.start()
    assert sorted(values(broker, "t").split()) == ["a", "b", "c"]
    Tool(broker.address).text("topic", "create", "folder", "--partitions", 1)
    assert broker.stop()[0] == 0


def test_read_only_access_is_named(zookeeper, make):
    zookeeper.run("create /readonly", "setAcl /readonly world:anyone:r")
    code, said = refused(make(zookeeper.address, "/readonly"))
    assert code == CANNOT_CREATE, said
    assert "/millrace" in said and "access list" in said
    code, said = refused(make(zookeeper.address, "/readonly/below", folder="below"))
    assert code == CANNOT_CREATE, said
    assert "/readonly/below" in said and "chroot" in said


def test_digest_and_access_list(zookeeper, make):
    owned = {"digest": "millrace:secret", "acl": "owner"}
    broker = make(zookeeper.address, "/owned", **owned).start()
    use(broker, "t")
    assert broker.stop()[0] == 0
    assert "secret" not in broker.log_text()
    assert '"id":' not in zookeeper.run("get /owned/cluster/id")
    assert '"id":' in zookeeper.run("addauth digest millrace:secret", "get /owned/cluster/id")
    broker.start()
    assert sorted(values(broker, "t").split()) == ["a", "b", "c"]


@pytest.mark.fault
def test_data_flows_while_zookeeper_is_away_for_a_moment(own_zookeeper, make):
    broker = make(own_zookeeper.address, "/away", session_timeout=SESSION_MS_MAX).start()
    use(broker, "t")
    own_zookeeper.kill()
    broker.wait_for_log_line("the connection to ZooKeeper is lost")
    Tool(broker.address).text("produce", "t", stdin="d\n")
    own_zookeeper.start()
    broker.wait_for_log_line("ZooKeeper is connected again")
    assert sorted(values(broker, "t").split()) == ["a", "b", "c", "d"]
    Tool(broker.address).text("topic", "create", "u", "--partitions", 1)
    assert broker.stop()[0] == 0


@pytest.mark.fault
def test_a_broker_that_slept_past_its_session_learns_so(own_zookeeper, make):
    broker = make(own_zookeeper.address, "/asleep", session_timeout=1000).start()
    broker.process.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while own_zookeeper.children("/asleep/brokers/ids"):
        assert time.monotonic() < deadline
    broker.process.send_signal(signal.SIGCONT)
    broker.wait_for_log_line("ZooKeeper has ended our session")


@pytest.mark.fault
def test_an_ensemble_loses_its_leader(tmp_path, make):
    servers = ensemble(tmp_path / "ensemble")
    try:
        addresses = ",".join(server.address for server in servers)
        broker = make(addresses, "/ensemble", session_timeout=SESSION_MS_MAX).start()
        use(broker, "t")
        leader = next(server for server in servers if server.leads())
        leader.kill()
        Tool(broker.address).text("topic", "create", "u", "--partitions", 3)
        leader.start()
        assert "has ended our session" not in broker.log_text()
        assert broker.stop()[0] == 0
    finally:
        for server in servers:
            server.close()
