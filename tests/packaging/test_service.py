"""The service under a systemd that runs: what it shows, how it reloads, when it starts a broker again and when not."""

import json
import re
from pathlib import Path

from test_machine import CONSUME, PRODUCE, pid, processes, start_with_a_message

CONFIG = "/etc/millrace/millrace.toml"
BAD_CONFIG, CANNOT_CREATE = 78, 73


def shown(machine, name: str, unit: str = "millrace") -> str:
    return machine.run(f"systemctl show --property={name} --value {unit}").strip()


def drop_in(machine, *settings: str) -> None:
    folder = "/etc/systemd/system/millrace.service.d"
    lines = "\\n".join(("[Service]", *settings, ""))
    machine.run(f"mkdir {folder} && printf '{lines}' > {folder}/local.conf")


def ready_again(machine, after: str) -> None:
    """Runs the command, and returns when a broker has become ready behind it."""
    machine.run(
        f"{after}; timeout 90 grep -q 'broker: ready' <(journalctl --follow --lines=0 --unit=millrace)"
    )


def in_journal(machine, match: str = "") -> list[dict[str, str]]:
    lines = machine.run(f"journalctl --unit=millrace --output=json --identifier=millraced {match}")
    return list(map(json.loads, lines.splitlines()))


def test_it_shows_what_it_does_and_the_journal_has_fields(machine):
    start_with_a_message(machine)
    (created,) = in_journal(machine, "MILLRACE_TOPIC=orders")
    assert created["MESSAGE"].startswith("INFO  broker: topic created topic=orders")
    for name, value in {
        "PRIORITY": "6",
        "MILLRACE_SUBSYSTEM": "broker",
        "MILLRACE_PARTITIONS": "1",
        "_SYSTEMD_UNIT": "millrace.service",
        "_PID": pid(machine),
    }.items():
        assert created[name] == value
    assert all(record["PRIORITY"] in "346" for record in in_journal(machine))
    machine.run("systemctl restart millrace")
    assert shown(machine, "StatusText") == "serving 1 partitions"
    machine.run("systemctl stop millrace")
    assert (shown(machine, "Result"), shown(machine, "ExecMainStatus")) == ("success", "0")


def test_while_it_recovers_it_says_how_far_it_is_and_is_not_ready(machine):
    """What one log waits for is a file that does not end."""
    start_with_a_message(machine)
    machine.run("systemctl kill --signal=KILL millrace; systemctl stop millrace")
    held_up = "/var/lib/millrace/data/orders-0/leader-epoch-checkpoint"
    machine.run(f"rm -f {held_up} && mkfifo {held_up} && chown millrace: {held_up}")
    machine.run("systemctl start --no-block millrace")
    machine.until("{ systemctl status millrace; true; } | grep 'Status: \"recovering 0 of 1 logs\"'")
    assert shown(machine, "ActiveState") == "activating"
    machine.run(f"timeout 60 cp /dev/null {held_up}")
    machine.run("systemctl start millrace")
    assert machine.run(CONSUME) == "hello\n"


# By what the kernel says of the process.
OPEN_FILES = 1048576
STATUS = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0000000000000000", "CapBnd": "0000000000000000"}
EXPOSURE_MAX = 2.5


def test_its_limits_are_in_effect(machine):
    start_with_a_message(machine)
    process = f"/proc/{pid(machine)}"

    def limit(name: str, process: str = process) -> str:
        return re.search(rf"^{name} +\S+ +(\S+)", machine.run(f"cat {process}/limits"), re.MULTILINE)[1]

    # More than the machine itself may have is not to be had.
    assert shown(machine, "LimitNOFILE") == str(OPEN_FILES)
    assert int(limit("Max open files")) >= min(OPEN_FILES, int(limit("Max open files", "/proc/1")))
    assert limit("Max core file size") == "unlimited"
    status = re.findall(r"^(\w+):\t(.*)$", machine.run(f"cat {process}/status"), re.MULTILINE)
    assert STATUS.items() <= dict(status).items()
    assert shown(machine, "OOMPolicy") == "kill"
    machine.run(f"systemd-analyze security --threshold={EXPOSURE_MAX * 10:.0f} millrace")


def test_a_broker_that_aborts_leaves_a_core_where_the_kernel_puts_it(machine):
    start_with_a_message(machine)
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()  # one for all machines
    if pattern.startswith("/"):  # and of no other folder than this can a service know
        drop_in(machine, f"BindPaths=/srv/cores:{Path(pattern).parent}")
        machine.run("mkdir --mode=777 /srv/cores && systemctl daemon-reload && systemctl restart millrace")
    machine.run(f"test -w /proc/{pid(machine)}/cwd && runuser -u millrace -- test -w /var/lib/millrace")
    assert machine.run(f"readlink /proc/{pid(machine)}/cwd").strip() == "/var/lib/millrace"
    ready_again(machine, "systemctl kill --signal=ABRT millrace")
    assert "code=dumped, status=6/ABRT" in machine.journal()
    assert machine.run(CONSUME) == "hello\n"


def test_a_reload_takes_over_what_is_right_and_fails_for_what_is_not(machine):
    machine.install("millrace")
    machine.run("systemctl start millrace")
    before = pid(machine)
    machine.run(
        "printf '[log]\\nlevel = \"debug\"\\n[broker]\\nmemory = 300000000\\n' > /etc/millrace/conf.d/local.toml"
    )
    machine.run("systemctl reload millrace")
    machine.run(
        "timeout 60 grep -q 'count from the next start options=broker.memory' "
        "<(journalctl --follow --lines=100 --unit=millrace)"
    )
    machine.run(f"echo '[broker]' > {CONFIG} && echo 'idd = 1' >> {CONFIG}")
    machine.run("systemctl reload millrace", code=1)
    assert f"{CONFIG}:2:1" in machine.journal()
    assert (pid(machine), shown(machine, "ActiveState")) == (before, "active")


def test_a_full_disk_stops_producers_and_nothing_else(machine):
    """Readers go on, the broker does, and producers do once there is room."""
    machine.install("millrace")
    owner = machine.run("id -u millrace").strip()
    machine.run(f"mount -t tmpfs -o size=64m,mode=0750,uid={owner},gid={owner} tmpfs /var/lib/millrace")
    machine.run("systemctl start millrace && millrace topic create orders && millrace topic create filler")
    machine.run(f"echo hello | {PRODUCE}")
    before = pid(machine)
    fill = PRODUCE.replace("orders", "filler") + " -X message.timeout.ms=4000"
    machine.run("head -c 500000 /dev/zero | tr '\\0' x > /tmp/message")
    machine.run("for n in $(seq 200); do echo /tmp/message; done > /tmp/list")
    machine.run(f"xargs -a /tmp/list {fill}", code=123)
    assert machine.run(CONSUME) == "hello\n"
    assert (pid(machine), shown(machine, "ActiveState")) == (before, "active")
    machine.run("millrace topic delete filler")
    machine.run(f"echo again | timeout 60 {PRODUCE}")
    assert machine.run(CONSUME) == "hello\nagain\n"
    assert (pid(machine), shown(machine, "NRestarts")) == (before, "0")


def test_a_broker_that_is_killed_or_hangs_is_started_again(machine):
    start_with_a_message(machine)
    ready_again(machine, "systemctl kill --signal=KILL millrace")
    assert machine.run(CONSUME) == "hello\n"
    # What is stopped as a whole does not even end by the watchdog's SIGABRT, as what hangs would.
    drop_in(machine, "WatchdogSec=2s", "TimeoutAbortSec=1s")
    machine.run("systemctl daemon-reload && systemctl restart millrace")
    ready_again(machine, f"kill -STOP {pid(machine)}")
    assert "Watchdog timeout" in machine.journal()
    assert machine.run(CONSUME) == "hello\n"


def test_a_broker_whose_configuration_is_wrong_is_not_started_again(machine):
    machine.install("millrace")
    machine.run(f"echo 'idd = 1' > {CONFIG}")
    machine.run("systemctl start millrace", code=1)
    assert shown(machine, "ExecMainStatus") == str(BAD_CONFIG)
    assert (shown(machine, "ActiveState"), shown(machine, "NRestarts")) == ("failed", "0")


def test_a_data_folder_elsewhere_is_refused_with_the_remedy_and_works_with_it(machine):
    machine.install("millrace")
    machine.run("mkdir /srv/topics && chown millrace: /srv/topics")
    machine.run("echo 'broker.data = \"/srv/topics/data\"' > /etc/millrace/conf.d/data.toml")
    machine.run("systemctl start millrace", code=1)
    assert shown(machine, "ExecMainStatus") == str(CANNOT_CREATE)
    assert "ReadWritePaths=/srv/topics/data" in shown(machine, "StatusText")
    machine.run("systemctl stop millrace && mkdir /srv/topics/data && chown millrace: /srv/topics/data")
    drop_in(machine, "ReadWritePaths=/srv/topics/data")
    machine.run("systemctl daemon-reload && systemctl start millrace && millrace topic create orders")
    # A purge leaves it too, and says where it is.
    said = machine.run("apt-get -qq purge millrace")
    assert "/srv/topics/data holds topics and stays. To delete them for good: rm -rf /srv/topics/data\n" in said
    machine.run("test -d /srv/topics/data/orders-0 -a ! -e /var/lib/millrace -a -e /etc/millrace/conf.d/data.toml")


def test_several_brokers_on_one_host(machine):
    start_with_a_message(machine)
    others = {"second": ("127.0.0.1:9192", "127.0.0.1:9744"), "third": ("127.0.0.1:9292", "127.0.0.1:9844")}
    for id, (name, (kafka, http)) in enumerate(others.items(), start=2):
        machine.run(
            f"mkdir /etc/millrace/{name} && "
            f"printf '[broker]\\nid = {id}\\ndata = \"/var/lib/millrace/{name}\"\\n"
            f"[transport.kafka]\\nlisten = \"{kafka}\"\\n[transport.http]\\nlisten = \"{http}\"\\n' "
            f"> /etc/millrace/{name}/millrace.toml"
        )
    machine.run("systemctl start millrace@second millrace@third")
    for name, (there, _) in others.items():
        machine.run(f"echo {name} | {PRODUCE.replace('127.0.0.1:9092', there)}")
        assert machine.run(CONSUME.replace("127.0.0.1:9092", there)) == f"{name}\n"
    assert machine.run(CONSUME) == "hello\n"
    machine.run("systemctl stop millrace@second")
    before = {shown(machine, "MainPID", unit) for unit in ("millrace", "millrace@third")}
    machine.install("millrace", options="--reinstall")
    after = {shown(machine, "MainPID", unit) for unit in ("millrace", "millrace@third")}
    assert not after & {*before, "0"}
    machine.run("systemctl is-active millrace@second", code=3)
    machine.run("apt-get -qq remove millrace")
    assert processes(machine) == ""
