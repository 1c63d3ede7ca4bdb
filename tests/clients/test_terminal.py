"""The tool as people use it: in terminals of any width, in pipes, with Ctrl-C, and with brokers that say nothing."""

import contextlib
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time

import pytest

from harness.broker import PREFIX
from harness.tmux import Terminals
from harness.tool import Tool, run

pytestmark = pytest.mark.millrace

TOOL = str(PREFIX / "bin" / "millrace")
SECONDS_MAX = 60
LONG = "terminal-orders-of-today"


@pytest.fixture(scope="module")
def terminals(tmp_path_factory):
    made = Terminals(tmp_path_factory.mktemp("tmux"))
    yield made
    made.close()


@pytest.fixture
def tool(broker) -> Tool:
    return Tool(broker.address)


@pytest.fixture(scope="module", autouse=True)
def asked_in_vain(broker):
    """One that accepts and never answers is asked while the other tests run: it takes ten seconds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        asking = subprocess.Popen(
            [TOOL, "-b", address, "topic", "list"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        yield address, asking
        asking.kill()
        asking.wait()


def test_a_table_fits_a_terminal_of_any_width(broker, tool, terminals):
    tool.text("topic", "create", LONG, "--partitions", 2)
    tool.text("group", "reset", "terminal-group", "--to-latest", "--topic", LONG, "--execute")
    narrow = terminals.millrace(40, "-b", broker.address, "topic", "list")
    wide = terminals.millrace(120, "-b", broker.address, "topic", "list")
    described = terminals.millrace(40, "-b", broker.address, "group", "describe", "terminal-group")
    helped = terminals.millrace(40, "cluster", "drain", "--help")

    lines, code = wide.ended()
    assert code == 0 and lines[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS"]
    assert [LONG, "2", "1"] in map(str.split, lines)
    lines, code = narrow.ended()
    at = lines.index(f"TOPIC       {LONG}")
    assert code == 0 and lines[at + 1 : at + 3] == ["PARTITIONS  2", "REPLICAS    1"]
    lines, code = described.ended()
    assert code == 0
    for expected in ("PARTITION  0", "PARTITION  1", "COMMITTED  0", "LAG        0"):
        assert expected in lines, lines
    lines, code = helped.ended()
    assert code == 0
    assert lines[lines.index("  --wait") + 1 :][:2] == ["      until it is empty; fails where it", "      cannot be"]
    # A pipe is never fitted.
    assert [LONG, "2", "1"] in map(str.split, tool.text("topic", "list").splitlines())


def test_no_table_is_wider_than_a_narrow_terminal(broker, tool, terminals):
    """Of sentences, and of values without a blank, the terminal breaks what does not fit."""
    tool.text("topic", "create", "terminal-narrow-orders", "--partitions", 2)
    tool.text("group", "reset", "terminal-narrow", "--to-latest", "--topic", "terminal-narrow-orders", "--execute")
    windows = {
        words: terminals.millrace(40, "-b", broker.address, *words.split())
        for words in (
            "topic list",
            "topic describe terminal-narrow-orders",
            "group list",
            "group describe terminal-narrow",
            "group reset terminal-narrow --to-earliest",
            "cluster describe",
            "cluster brokers",
            "cluster status",
            "config get --topic terminal-narrow-orders",
            "config explain retention.ms",
            f"plugin list --admin {broker.http_address()}",
            "plugin show storage/filelog",
            f"doctor --admin {broker.http_address()}",
        )
    }
    for words, window in windows.items():
        lines, code = window.ended()
        assert code == 0 or words.startswith("doctor"), (words, lines)
        shown = window.text("-J").splitlines()
        assert len(shown) > 2, words
        for line in shown:
            columns = re.split(r" {2,}", line.strip())
            assert len(line.rstrip()) <= 40 or len(columns) <= 2, (words, line)


def test_colours_are_for_terminals_that_want_them(broker, terminals):
    words = ("-b", broker.address, "cluster", "describe")
    windows = {
        "plain": terminals.millrace(100, *words),
        "no colour": terminals.millrace(100, *words, NO_COLOR="1"),
        "dumb": terminals.millrace(100, *words, TERM="dumb"),
        "error": terminals.millrace(100, "-b", broker.address, "topic", "describe", "no-such"),
    }
    for window in windows.values():
        window.ended()
    assert "\x1b[1mBROKER" in windows["plain"].text("-e")
    assert "\x1b" not in windows["no colour"].text("-e")
    assert "\x1b" not in windows["dumb"].text("-e")
    assert "\x1b[31mmillrace:" in windows["error"].text("-e")
    assert "\x1b" not in run(*words).output


def test_ctrl_c_ends_at_once_and_says_what_was_sent(broker, tool, terminals):
    tool.text("topic", "create", "terminal-typed", "--partitions", 1)
    reader = terminals.millrace(100, "-b", broker.address, "consume", "terminal-typed", "--follow")
    writer = terminals.millrace(100, "-b", broker.address, "produce", "terminal-typed")
    writer.keys("one", "Enter", "two", "Enter")
    # Who types is not left waiting for a batch to be full.
    assert "one\ntwo" in reader.wait_for("two")
    writer.keys("C-c")
    reader.keys("C-c")
    lines, code = writer.ended()
    assert code == 130
    assert "millrace: ended by a signal; the broker has acknowledged 2 messages" in lines
    lines, code = reader.ended()
    assert code == 130
    assert [line for line in lines if line] == ["one", "two", "^C"]


def test_progress_is_shown_on_a_terminal_alone(broker, tool):
    tool.text("topic", "create", "terminal-progress", "--partitions", 1)
    ours, theirs = pty.openpty()
    sending = subprocess.Popen(
        [TOOL, "-b", broker.address, "produce", "terminal-progress"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + SECONDS_MAX
    while b" messages, " not in seen:
        assert time.monotonic() < deadline, seen
        sending.stdin.write(b"line\n")
        sending.stdin.flush()
        if select.select([ours], [], [], 0.02)[0]:
            seen += os.read(ours, 4096)
    sending.stdin.close()
    assert sending.wait(SECONDS_MAX) == 0
    os.close(ours)
    quiet = run("-b", broker.address, "produce", "terminal-progress", stdin="x\n" * 100)
    assert quiet.errors == "sent 100 records\n"


def on_a_terminal(*words: object) -> tuple[subprocess.Popen, int]:
    """The tool, and what its stderr is read from."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen([TOOL, *map(str, words)], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    return running, ours


def told(terminal: int, until: str | None = None) -> str:
    """Up to where it has `until`; without one, until nobody has the other end any more."""
    seen = b""
    deadline = time.monotonic() + SECONDS_MAX
    with contextlib.suppress(OSError):
        while until is None or until.encode() not in seen:
            left = max(deadline - time.monotonic(), 0)
            assert select.select([terminal], [], [], left)[0], seen
            seen += os.read(terminal, 4096)
    return seen.decode()


def test_bench_and_consume_tell_how_far_they_are(broker, tool):
    tool.text("topic", "create", "terminal-long", "--partitions", 1)
    reading, of_reading = on_a_terminal("-b", broker.address, "consume", "terminal-long", "--follow")
    filling = ("-b", broker.address, "bench", "produce", "--topic", "terminal-long", "--seconds", 60, "--rate", 1000)
    sending, of_sending = on_a_terminal(*filling)
    read = told(of_reading, until=" messages")
    sent = told(of_sending, until=" messages, now ")
    for running in (reading, sending):
        running.send_signal(signal.SIGINT)
        assert running.wait(SECONDS_MAX) == -signal.SIGINT
    read += told(of_reading)
    sent += told(of_sending)
    for seen, progress in ((sent, r"produce: \d+ messages, now "), (read, r"\d+ messages")):
        assert re.search(progress, seen), seen
    # The line is taken away before what comes of it.
    assert "messages, now" not in sent.split("\x1b[K")[-1]
    os.close(of_reading)
    os.close(of_sending)


def test_nothing_that_others_wrote_is_a_command_for_a_terminal(broker, tool, terminals):
    tool.text("topic", "create", "terminal-escapes", "--partitions", 1)
    hostile = "\x1b[31mred \x1b]0;title\x07 \u009b2J"
    tool.text("produce", "terminal-escapes", stdin=hostile + "\n")
    window = terminals.millrace(100, "-b", broker.address, "consume", "terminal-escapes")
    lines, code = window.ended()
    assert code == 0 and r"\x1b[31mred \x1b]0;title\x07 \xc2\x9b2J" in lines
    # A pipe has the bytes.
    assert tool.text("consume", "terminal-escapes") == hostile + "\n"
    for words in (
        ("config", "explain", hostile),
        ("plugin", "check", hostile),
        ("plugin", "new", hostile, "--kind", "operators"),
        ("log", "verify", hostile),
        ("config", "get", "--topic", hostile),
        ("stream", "--admin", broker.http_address(), "describe", hostile),
    ):
        refused = run("-b", broker.address, *words) if words[0] != "stream" else run(*words)
        assert refused.code != 0 and r"\x1b[31mred" in refused.errors, words
        assert not {"\x1b", "\x07", "\u009b"} & set(refused.errors), words


def test_ctrl_c_leaves_no_half_made_plugin(tmp_path):
    template = tmp_path / "templates" / "operators"
    template.mkdir(parents=True)
    (template / "sample_test.cc").write_text("sample\n")
    os.mkfifo(template / "sample.cc")
    made = tmp_path / "made"
    made.mkdir()
    words = (TOOL, "plugin", "new", "mine", "--kind", "operators", "--templates", template.parent)
    for interrupted in (True, False):
        making = subprocess.Popen(words, cwd=made, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Opened once the tool reads it.
        with open(template / "sample.cc", "w") as writer:
            assert not (made / "mine").exists(), "it is there as a whole, or not at all"
            if interrupted:
                making.send_signal(signal.SIGINT)
            writer.write("sample\n")
        assert making.wait(SECONDS_MAX) == (-signal.SIGINT if interrupted else 0)
        making.communicate()
        assert [one.name for one in made.iterdir()] == ([] if interrupted else ["mine"])
    assert {one.name for one in (made / "mine").iterdir()} == {"mine.cc", "mine_test.cc"}
    assert (made / "mine").stat().st_mode & 0o077 == 0o077 & ~_umask()
    again = run("plugin", "new", "mine", "--into", made / "mine", "--kind", "operators", "--templates", template.parent)
    assert again.code == 1 and "is there already" in again.errors


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def to(output: str, *words: object) -> subprocess.CompletedProcess:
    """With stdout where a shell puts it."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {output}', "sh", TOOL, *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
    )


def test_what_the_user_writes_himself_is_one(broker, tool, terminals):
    """Of a format with commands the terminal gets those; of the message none."""
    tool.text("topic", "create", "terminal-format", "--partitions", 1)
    tool.text("produce", "terminal-format", stdin="\x1b[31mvalue\n")
    words = ("consume", "terminal-format", "--format", r"\x1b[35m%s\x1b[0m;\n")
    window = terminals.millrace(100, "-b", broker.address, *words)
    lines, code = window.ended()
    assert code == 0 and lines[0] == r"\x1b[31mvalue;", lines
    assert "\x1b[35m\\x1b[31mvalue" in window.text("-e")


@pytest.mark.parametrize("output, said", [(">/dev/full", "No space left"), (">&-", "Bad file descriptor")])
def test_what_cannot_be_printed_is_told(broker, output, said):
    for words in (("topic", "list"), ("-o", "json", "topic", "list"), ("--help",)):
        done = to(output, "-b", broker.address, *words)
        assert done.returncode == 74
        assert "millrace: stdout: " in done.stderr and said in done.stderr


def test_a_closed_pipe_hides_no_failure(tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[broker]\ndatta = "x"\n')
    reading, writing = os.pipe()
    os.close(reading)
    checking = subprocess.run(
        [TOOL, "config", "check", wrong], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=SECONDS_MAX
    )
    os.close(writing)
    assert checking.returncode == run("config", "check", wrong).code != 0
    assert "1 mistake" in checking.stderr


def test_a_reader_that_has_enough_ends_consume_quietly(broker, tool):
    tool.text("topic", "create", "terminal-pipe", "--partitions", 1)
    tool.text("produce", "terminal-pipe", stdin=("x" * 99 + "\n") * 5000)
    for follow in ((), ("--follow",)):
        consuming = subprocess.Popen(
            [TOOL, "-b", broker.address, "consume", "terminal-pipe", *follow],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert consuming.stdout.read(100) == b"x" * 99 + b"\n"
        consuming.stdout.close()
        assert (consuming.wait(SECONDS_MAX), consuming.stderr.read()) == (0, b"")


def test_whoever_is_interrupted_leaves_whole_lines(broker, tool):
    tool.text("topic", "create", "terminal-cut", "--partitions", 1)
    tool.text("produce", "terminal-cut", stdin="y" * 1000 + "\n")
    consuming = subprocess.Popen(
        [TOOL, "-b", broker.address, "consume", "terminal-cut", "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert consuming.stdout.readline() == b"y" * 1000 + b"\n"
    consuming.send_signal(signal.SIGINT)
    # As a shell has it: 130.
    assert consuming.wait(SECONDS_MAX) == -signal.SIGINT
    assert (consuming.stdout.read(), consuming.stderr.read()) == (b"", b"")


def test_a_closed_port_is_told_with_what_to_try():
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    refused = run("-b", address, "topic", "list")
    assert refused.code == 69 and refused.output == ""
    for part in (f"no broker at {address}", "Connection refused, after ", " ms; is it running", "--bootstrap HOST:PORT"):
        assert part in refused.errors
    admin = run("stream", "--admin", address, "list")
    assert admin.code == 69
    assert f"no admin API of a broker at {address}" in admin.errors and "--admin HOST:PORT" in admin.errors


def test_one_that_is_no_broker_is_told_as_such():
    """As somebody who names the port of another program."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        for words in (("-b", address, "topic", "list"), ("stream", "--admin", address, "list")):
            asking = subprocess.Popen([TOOL, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            connection, _ = other.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"no Kafka here, and no JSON" * 20)
            output, errors = asking.communicate(timeout=SECONDS_MAX)
            assert output == "" and address in errors
            if words[0] == "-b":
                assert asking.returncode == 69
                assert "is that the Kafka port of a broker" in errors and "--bootstrap HOST:PORT" in errors
            else:
                assert asking.returncode == 65
                assert "is it transport http?" in errors and "--admin HOST:PORT" in errors
    unknown = run("stream", "--admin", "no-such-host.invalid:9644", "list")
    assert unknown.code == 69 and "no-such-host.invalid" in unknown.errors and " ms; " in unknown.errors


def test_the_next_of_several_brokers_is_asked(broker):
    assert run("-b", f"127.0.0.1:1,{broker.address}", "topic", "list").code == 0
    neither = run("-b", "127.0.0.1:1,[::1]:1", "topic", "list")
    assert neither.code == 69
    assert "no broker at 127.0.0.1:1" in neither.errors and "no broker at [::1]:1" in neither.errors


def test_one_that_does_not_answer_is_given_up(asked_in_vain):
    address, asking = asked_in_vain
    output, errors = asking.communicate(timeout=SECONDS_MAX)
    assert (asking.returncode, output) == (69, "")
    assert f"no broker at {address}: no answer for 10 s; does it hang, or is a firewall between?" in errors
