"""The daemon as an operator meets it: its arguments, its exit codes, its first and last lines."""

import os
import resource
import shutil
import signal
import subprocess
import time

import pytest

from harness.broker import PREFIX, Millrace, free_port
from harness.confluent import Confluent
from harness.paths import SOURCE
from harness.plugin_files import install_damaged
from harness.records import Record
from harness.streams import STEPS
from harness.wire import RawConnection
from harness.zookeeper import ZooKeeper

pytestmark = pytest.mark.millrace

DAEMON_SECONDS_MAX = 120
USAGE, UNAVAILABLE, CANNOT_CREATE, BAD_CONFIG = 64, 69, 73, 78


def daemon(*words: object) -> subprocess.CompletedProcess:
    """Runs it to its end, which must come by itself."""
    return subprocess.run(
        [str(PREFIX / "bin" / "millraced"), *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DAEMON_SECONDS_MAX,
    )


@pytest.fixture
def broker(tmp_path):
    one = Millrace(tmp_path / "broker")
    yield one
    one.close()


def test_help_and_version():
    assert daemon("--version").stdout.startswith("millraced ")
    shown = daemon("--help")
    assert shown.returncode == 0
    for word in ("--config", "--set", "--check", "broker.data"):
        assert word in shown.stdout


@pytest.mark.parametrize("words", [["--nonsense"], ["extra"], ["--config"], ["--config", ""]])
def test_wrong_usage(words):
    assert daemon(*words).returncode == USAGE


def test_check_reports_all_errors_of_a_file_at_once(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text('[broker]\nidd = 1\nshards = "two"\n\n[storage]\nplugin = "filelogg"\n')
    checked = daemon("--config", config, "--check")
    assert checked.returncode == BAD_CONFIG
    assert f"{config}:2:1" in checked.stderr and "id" in checked.stderr
    assert f"{config}:3:" in checked.stderr
    assert f"{config}:6:" in checked.stderr and "filelog" in checked.stderr


@pytest.mark.parametrize(
    "wrong, said",
    [
        ("broker.idd=1", "broker.idd"),
        ("broker.shards=100000", "broker.shards"),
        ("transport.kafka.listen=nowhere", "HOST:PORT"),
        ('defaults."num.partitionss"=3', "num.partitions"),
        ('defaults."log.retention.ms"="soon"', "log.retention.ms"),
        ("storage.plugin=nosuch", "nosuch"),
    ],
)
def test_a_wrong_setting_is_refused(tmp_path, wrong, said):
    refused = daemon("--set", f"broker.data={tmp_path}", "--set", wrong)
    assert refused.returncode == BAD_CONFIG
    assert said in refused.stderr


def test_a_missing_file_is_said():
    refused = daemon("--config", "/no/such/millrace.toml")
    assert refused.returncode == BAD_CONFIG
    assert "/no/such/millrace.toml" in refused.stderr


def test_a_folder_of_plugins_that_is_not_there_is_told():
    checked = daemon("--set", 'plugins.path=["/no/such"]', "--check")
    assert checked.returncode == 0
    assert "warning: --set plugins.path" in checked.stderr
    assert "there is no folder /no/such" in checked.stderr


def test_a_damaged_plugin_is_named_by_whom_it_ends(tmp_path):
    hurt = tmp_path / "operators" / "hurt.so"
    install_damaged(STEPS / "operators" / "pass.so", hurt)
    refused = daemon("--set", f'plugins.path=["{tmp_path}"]', "--check")
    assert refused.returncode == BAD_CONFIG
    assert f"millraced: {hurt}: whoever loads it ends by SIG" in refused.stderr


def test_who_has_no_http_is_told(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text("[transport.kafka]\n")
    started = daemon("--config", config, "--set", "broker.data=/proc/no/such")
    assert "the configuration has no transport http" in started.stderr


@pytest.mark.parametrize("config", sorted((SOURCE / "configs").glob("*.toml")), ids=lambda p: p.name)
def test_every_ready_configuration_starts(tmp_path, config, request):
    assert daemon("--config", config, "--check").returncode == 0

    class Configured(Millrace):
        def command(self):
            words = super().command()
            return [words[0], "--config", str(config), *words[1:]]

    settings = {}
    if 'plugin = "zookeeper"' in config.read_text():
        server = ZooKeeper(tmp_path / "zookeeper")
        request.addfinalizer(server.close)
        settings["coordination.connect"] = f"{server.start().address}/millrace"
    one = Configured(tmp_path / "broker", settings=settings)
    try:
        one.start()
        assert one.stop()[0] == 0
    finally:
        one.close()


def test_start_and_stop_are_told(broker):
    broker.start()
    for plugin in ("storage.filelog", "coordination.standalone", "transport.kafka"):
        line = broker.wait_for_log_line("plugin started", f"org.millrace.{plugin}")
        assert ".so" in line
    broker.wait_for_log_line("listening", broker.address)
    broker.wait_for_log_line("opened")
    broker.wait_for_log_line("ready")
    assert broker.stop()[0] == 0
    assert "stopped" in broker.log_text()


def test_a_data_folder_has_one_owner(broker):
    client = Confluent(broker.start().address)
    client.create_topic("orders", 1)
    client.produce("orders", [Record(None, b"x", partition=0)])
    client.trim("orders", 0, 1)
    starts = broker.folder / "data" / "log-start-offset-checkpoint"
    before = starts.read_text()
    assert "orders 0 1" in before
    second = daemon("--set", f"broker.data={broker.folder / 'data'}",
                    "--set", f"transport.kafka.listen=127.0.0.1:{free_port()}")
    assert second.returncode == CANNOT_CREATE
    assert str(broker.process.pid) in second.stderr
    broker.assert_running()
    # It emptied the checkpoints: a kill of the owner would have brought deleted records back.
    assert starts.read_text() == before
    client.close()


def test_a_data_folder_that_cannot_be_made():
    refused = daemon("--set", "broker.data=/proc/no/such")
    assert refused.returncode == CANNOT_CREATE
    assert "/proc/no/such" in refused.stderr
    assert refused.stderr.count("ERROR") == 1, "the reason, and nothing of what followed from it"


def test_a_data_folder_where_this_user_may_not_write_is_told_with_the_remedy():
    """Who starts the embedded default by hand meets this first. Nobody may make folders in /sys."""
    refused = daemon("--set", "broker.data=/sys/millrace")
    assert refused.returncode == CANNOT_CREATE, refused.stderr
    assert "make folder /sys/millrace: " in refused.stderr
    assert "millraced --set broker.data=$HOME/millrace-data" in refused.stderr


def test_a_port_in_use(broker, tmp_path):
    broker.start()
    second = daemon("--set", f"broker.data={tmp_path / 'other'}",
                    "--set", f"transport.kafka.listen={broker.address}",
                    "--set", "transport.http.listen=127.0.0.1:0")
    assert second.returncode == UNAVAILABLE
    assert broker.address in second.stderr


def test_the_http_port_in_use(broker, tmp_path):
    broker.start()
    second = daemon("--set", f"broker.data={tmp_path / 'other'}",
                    "--set", "transport.kafka.listen=127.0.0.1:0",
                    "--set", f"transport.http.listen={broker.http_address()}")
    assert second.returncode == UNAVAILABLE
    assert f"transport.http: listen on {broker.http_address()}" in second.stderr
    assert "set transport.http.listen" in second.stderr


def test_a_plugin_that_does_not_fit_ends_the_start(tmp_path):
    prefix = tmp_path / "prefix"
    for folder in ("bin", "lib"):
        shutil.copytree(PREFIX / folder, prefix / folder, ignore=shutil.ignore_patterns("*test*"))
    (prefix / "lib/millrace/plugins/storage/filelog.so").write_text("not a plugin")
    refused = subprocess.run(
        [str(prefix / "bin/millraced"), "--set", f"broker.data={tmp_path / 'data'}"],
        capture_output=True, text=True, timeout=DAEMON_SECONDS_MAX,
    )
    assert refused.returncode == BAD_CONFIG
    assert "filelog.so" in refused.stderr and "not an ELF file" in refused.stderr
    assert not (tmp_path / "data").exists()


class Wrapped(Millrace):
    """Started by way of a shell command that ends in the daemon's own, "$@"."""

    script = 'exec "$@"'

    def command(self):
        return ["sh", "-c", self.script, "sh", *super().command()]


def test_closed_standard_descriptors_become_dev_null(tmp_path):
    class Closed(Wrapped):
        script = 'exec "$@" 0<&- 1>&- 2>&-'

    one = Closed(tmp_path / "broker")
    try:
        one.start_early()  # it tells nothing
        for descriptor in range(3):
            assert os.readlink(f"/proc/{one.process.pid}/fd/{descriptor}") == "/dev/null"
        assert one.stop()[0] == 0
    finally:
        one.close()


def test_it_takes_all_open_files_that_it_may_have(tmp_path):
    class Limited(Wrapped):
        script = 'ulimit -S -n 64; exec "$@"'

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    one = Limited(tmp_path / "broker")
    try:
        one.start()
        assert resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE) == (most, most)
        assert f"limit={most}" in one.wait_for_log_line("open files", "limit_before=64")
        assert one.stop()[0] == 0
    finally:
        one.close()


def test_a_reader_of_stderr_that_stalls_holds_nobody_up(tmp_path):
    """It logs a line per connection; a pipe holds 64 KiB, and the log's queue about 1 MiB."""
    one = Millrace(tmp_path / "broker", settings={"log.level": "debug"})
    never_read, its_end = os.pipe()
    process = subprocess.Popen(
        one.command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=its_end
    )
    os.close(its_end)
    try:
        deadline = time.monotonic() + DAEMON_SECONDS_MAX
        while not one._answers():
            assert process.poll() is None and time.monotonic() < deadline
        junk = b"\x00\x00\x00\x10" + bytes([0x7F]) * 16
        for _ in range(10_000):
            with RawConnection(one.address) as bad:
                bad.send(junk)
                assert bad.closed_by_broker()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DAEMON_SECONDS_MAX) == 0
    finally:
        process.kill()
        process.wait()
        os.close(never_read)


def test_a_plugins_task_that_still_waits_at_the_end_is_told_and_does_no_harm(tmp_path):
    """It waited for what the broker tore down, which woke it in a thread that was not its own."""
    broken = PREFIX / "tests" / "plugins" / "broken"
    settings = {"plugins.path": f'["{broken}"]', "transport.waiting.plugin": "waiting"}
    one = Millrace(tmp_path / "broker", settings=settings)
    try:
        one.start()
        assert one.stop()[0] == 0, one.log_tail()
    finally:
        one.close()
    assert "something still waited at the end" in one.log_text()


def test_sighup_changes_log_levels(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text("")

    class Configured(Millrace):
        def command(self):
            words = super().command()
            return [words[0], "--config", str(config), *words[1:]]

    one = Configured(tmp_path / "broker")
    try:
        one.start()
        config.write_text('[log]\nlevel = "loud"\n')
        one.process.send_signal(signal.SIGHUP)
        one.wait_for_log_line("nothing was changed", "loud")
        config.write_text('[log]\nlevel = "debug"\n')
        one.process.send_signal(signal.SIGHUP)
        one.wait_for_log_line("log levels are as configured now")
        with RawConnection(one.address) as short:
            short.ask_api_versions()
        one.wait_for_log_line("DEBUG", f":{short.port}")
        assert one.stop()[0] == 0
    finally:
        one.close()


def begin(broker: Millrace) -> None:
    """Starts it and does not wait for an answer."""
    with broker.log_path.open("wb") as log:
        broker.process = subprocess.Popen(
            broker.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=broker.folder
        )


def test_a_pipe_is_read_once_and_a_reload_of_it_waits_for_nobody(tmp_path):
    """As `--config <(generate)` of a shell gives it; in conf.d it would hold up a start."""
    folder = tmp_path / "broker"
    (folder / "conf.d").mkdir(parents=True)
    pipe = folder / "pipe.toml"
    os.mkfifo(pipe)
    one = Millrace(folder)
    command = one.command()
    one.command = lambda: [*command, "--config", str(pipe)]
    giving = subprocess.Popen(["sh", "-c", f"echo broker.shards = 1 > {pipe}"])
    try:
        one.start()
        assert giving.wait(DAEMON_SECONDS_MAX) == 0
        one.process.send_signal(signal.SIGHUP)
        one.wait_for_log_line("nothing was changed", f"{pipe}: a reload needs a regular file")
        one.end()
    finally:
        giving.kill()
        giving.wait()
        one.close()
    os.mkfifo(folder / "conf.d" / "more.toml")
    (folder / "millrace.toml").write_text("")
    refused = daemon("--config", folder / "millrace.toml", "--check")
    assert refused.returncode == BAD_CONFIG
    assert refused.stderr == f"{folder}/conf.d/more.toml: this is no regular file\n"


def test_sighup_before_the_broker_has_started_is_taken_up_when_it_has(tmp_path):
    """It ended the daemon. What holds the start up here is a configuration that nobody has written
    yet."""
    config = tmp_path / "millrace.toml"
    os.mkfifo(config)

    class Configured(Millrace):
        def command(self):
            words = super().command()
            return [words[0], "--config", str(config), *words[1:]]

    one = Configured(tmp_path / "broker")
    begin(one)
    try:
        with config.open("w") as read_by_broker:  # returns once it is
            config.unlink()
            config.write_text('[log]\nlevel = "debug"\n')
            one.process.send_signal(signal.SIGHUP)
            read_by_broker.write("")
        one.wait_for_log_line("ready")
        one.wait_for_log_line("log levels are as configured now")
        assert one.stop()[0] == 0
    finally:
        one.close()


def test_sigterm_ends_a_start_that_takes_long(tmp_path):
    """Such as the takeover of a large directory; here a file that never ends."""
    one = Millrace(tmp_path / "broker")
    (one.folder / "data").mkdir()
    os.mkfifo(one.folder / "data" / "meta.properties")
    begin(one)
    try:
        one.wait_for_log_line("plugin started", "filelog")
        assert one.stop() <= (0, one.stop_seconds_max)
        assert "ended before it had started" in one.log_text()
    finally:
        one.close()


@pytest.mark.alone
def test_a_stop_is_in_time_with_thousands_of_segments_that_are_not_synced(tmp_path):
    one = Millrace(tmp_path / "broker", {"log.segment.bytes": 1024})
    records = [Record(None, bytes(1000), partition=0) for _ in range(10_000)]
    try:
        client = Confluent(one.start().address)
        client.create_topic("orders", 1)
        client.produce("orders", records, largest=1100)  # one to a batch
        assert one.stop() <= (0, one.stop_seconds_max)
        one.start()
        assert client.bounds("orders", 0) == (0, len(records))
        assert one.stop()[0] == 0
    finally:
        one.close()
