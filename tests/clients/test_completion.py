"""What Tab makes of a line, in bash, zsh and fish: the scripts of packaging/completions with the tool, and
with a broker that it asks for names."""

import socket
import subprocess
import time

import pytest

from harness.broker import PREFIX
from harness.groups import NONE, ask, commit, offsets_when_loaded
from harness.shells import INSTALLED, Shell
from harness.tool import Tool
from harness.wire import RawConnection

SHELLS = tuple(INSTALLED)
# What Tab may take, with a tool that starts on a busy machine.
ANSWER_SECONDS_MAX = 3


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, tmp_path_factory):
    opened = Shell(request.param, tmp_path_factory.mktemp(request.param) / "home", PREFIX / "bin")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def topic(broker) -> str:
    Tool(broker.address).text("topic", "create", "completed-by-the-shell", "--partitions", 1)
    return "completed-by-the-shell"


@pytest.fixture(scope="module")
def group(broker, topic) -> str:
    """Most names are plain words; this one a shell has to quote."""
    name = 'readers of "completions"'
    with RawConnection(broker.address) as connection:
        offsets_when_loaded(connection, name, topic, [0])
        assert ask(connection, commit(name, topic, {0: 0})) == {0: NONE}
    return name


def completed(*words: str) -> list[str]:
    """What the tool itself answers."""
    command = [str(PREFIX / "bin" / "millrace"), "complete", "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("typed", "last"),
    [
        ("millrace topic des", "describe"),
        ("millrace topic create orders --repl", "--replication-factor"),
        ("millrace topic list --output js", "json"),
        ("millrace topic list --output=js", "--output=json"),
        ("millrace produce orders --compression sn", "snappy"),
        ("millrace config explain storage.open_f", "storage.open_files_max"),
        ("millrace config set --broker-default --set num.part", "num.partitions="),
        (
            "millrace topic create x --config message.timestamp.type=Log",
            "message.timestamp.type=LogAppendTime",
        ),
        ("millrace plugin show storage/file", "storage/filelog"),
        ("millraced --che", "--check"),
        ("millraced --set broker.sha", "broker.shards="),
        ("millraced --config /etc/hostn", "/etc/hostname"),
    ],
)
def test_a_word_is_completed(shell, typed, last):
    assert shell.complete(typed)[-1] == last


def test_names_of_topics_come_from_the_broker_that_is_typed(shell, broker, topic):
    for typed in (
        f"millrace -b {broker.address} topic describe completed-by",
        f"millrace --bootstrap={broker.address} consume --follow completed-by",
        f"millrace config get --bootstrap {broker.address} --topic completed-by",
    ):
        assert shell.complete(typed)[-1] == topic


def test_names_of_groups_come_quoted(shell, broker, group):
    words = shell.complete(f"millrace -b {broker.address} group describe readers")
    assert words == ["millrace", "-b", broker.address, "group", "describe", group]


def test_nothing_of_a_name_is_run(request, shell, broker, topic, tmp_path):
    """Any client may give a group a name."""
    begins = "zz" + request.node.callspec.params["shell"]
    name = f"{begins}$(touch {tmp_path}/a)`touch {tmp_path}/b`; touch {tmp_path}/c #*'\"\\~ $HOME"
    with RawConnection(broker.address) as connection:
        offsets_when_loaded(connection, name, topic, [0])
        assert ask(connection, commit(name, topic, {0: 0})) == {0: NONE}
    words = shell.complete(f"millrace -b {broker.address} group describe {begins}")
    assert words[-1] == name
    assert list(tmp_path.iterdir()) == []


def test_a_line_stays_as_it_is_where_nothing_fits(shell):
    words = ["millrace", "-b", "127.0.0.1:1", "topic", "describe", "completed-by"]
    assert shell.complete(" ".join(words)) == words


def test_a_broker_that_never_answers_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        assert completed("millrace", "-b", address, "topic", "describe", "") == ["none"]
        assert time.monotonic() - began < ANSWER_SECONDS_MAX


def test_what_makes_no_sense_is_answered_by_nothing():
    assert completed() == ["none"]
    assert completed("millrace", "-b", "no address", "topic", "describe", "") == ["none"]
    assert completed("millrace", "topic", "describe", "\x1b[31m", "") != []
