"""The service under a systemd that runs: what it shows, how it reloads, when it starts a broker again and when not."""

import json

from test_machine import CONSUME, PRODUCE, pid, start_with_a_message

CONFIG = "/etc/millrace/millrace.toml"
BAD_CONFIG, CANNOT_CREATE = 78, 73


def shown(machine, name: str, unit: str = "millrace") -> str:
    return machine.run(f"systemctl show --property={name} --value {unit}").strip()


def ready_again(machine, after: str) -> None:
    """Runs the command, and returns when a broker has become ready behind it."""
    machine.run(
        f"{after}; timeout 90 grep -q 'broker: ready' <(journalctl --follow --lines=0 --unit=millrace)"
    )


def test_it_shows_what_it_does_and_the_journal_has_priorities(machine):
    start_with_a_message(machine)
    machine.run("systemctl restart millrace")
    assert shown(machine, "StatusText") == "serving 1 partitions"
    lines = machine.run("journalctl --unit=millrace --output=json --identifier=millraced").splitlines()
    priorities = {line["MESSAGE"]: line["PRIORITY"] for line in map(json.loads, lines)}
    assert priorities["INFO  broker: ready"] == "6"


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
    machine.run("mkdir /etc/systemd/system/millrace.service.d")
    # What is stopped as a whole does not even end by the watchdog's SIGABRT, as what hangs would.
    machine.run(
        "printf '[Service]\\nWatchdogSec=2s\\nTimeoutAbortSec=1s\\n' > /etc/systemd/system/millrace.service.d/soon.conf"
    )
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
    machine.run("mkdir /etc/systemd/system/millrace.service.d")
    machine.run(
        "printf '[Service]\\nReadWritePaths=/srv/topics/data\\n' > /etc/systemd/system/millrace.service.d/data.conf"
    )
    machine.run("systemctl daemon-reload && systemctl start millrace")


def test_several_brokers_on_one_host(machine):
    start_with_a_message(machine)
    machine.run("mkdir /etc/millrace/second")
    machine.run(
        "printf '[broker]\\nid = 2\\ndata = \"/var/lib/millrace/second\"\\n"
        "[transport.kafka]\\nlisten = \"127.0.0.1:9192\"\\n[transport.http]\\nlisten = \"127.0.0.1:9744\"\\n' "
        "> /etc/millrace/second/millrace.toml"
    )
    machine.run("systemctl start millrace@second")
    there = "127.0.0.1:9192"
    machine.run(f"echo other | {PRODUCE.replace('127.0.0.1:9092', there)}")
    assert machine.run(CONSUME.replace("127.0.0.1:9092", there)) == "other\n"
    assert machine.run(CONSUME) == "hello\n"
    machine.run("systemctl stop millrace@second")
    assert shown(machine, "ActiveState") == "active"
