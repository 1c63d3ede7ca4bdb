"""`millraced --check`: what a start would refuse is refused here, with what, where and what would be right."""

from pathlib import Path

import pytest

from harness.broker import PREFIX
from test_daemon import BAD_CONFIG, daemon

pytestmark = pytest.mark.millrace

STREAM = '[stream.clean]\nsources = ["orders"]\nsink = "clean"\n[[stream.clean.steps]]\n'
FILTER = STREAM + 'operator = "filter"\nfield = "value.amount"\n'


def check(folder: Path, text: str | bytes) -> tuple[int, list[str], Path]:
    """The exit code, the lines that it wrote, and the file it was about."""
    config = folder / "millrace.toml"
    config.write_bytes(text if isinstance(text, bytes) else text.encode())
    checked = daemon("--config", config, "--set", f"broker.data={folder / 'data'}", "--check")
    return checked.returncode, checked.stderr.splitlines(), config


@pytest.mark.parametrize(
    "text, place, said",
    [
        pytest.param(
            "[broker]\nidd = 1\n",
            "2:1",
            ["broker.idd", "nearest known: id", "rack"],
            id="unknown-key",
        ),
        pytest.param(
            "[storge]\n",
            "1:2",
            ["unknown table storge", "nearest known: storage"],
            id="unknown-table",
        ),
        pytest.param(
            '[broker]\nshards = "two"\n',
            "2:10",
            ["an integer from 0 to 256", '"two"'],
            id="wrong-type",
        ),
        pytest.param(
            '[broker]\nmemory = "256MiB"\n',
            "2:10",
            ["(bytes)", '"256MiB"'],
            id="bad-unit",
        ),
        pytest.param(
            "[broker]\nshards = 9999\n",
            "2:10",
            ["from 0 to 256", "9999"],
            id="out-of-bounds",
        ),
        pytest.param(
            "[broker]\nid = 1\n[log]\n[broker]\n",
            "4:1",
            ["'broker'", "stands once"],
            id="twice",
        ),
        pytest.param("[broker\n", "1:8", ["expected ']'"], id="broken"),
        pytest.param(
            '[broker]\nrack = "\xff"\n'.encode("latin-1"),
            "2:8",
            ["utf-8"],
            id="not-utf-8",
        ),
        pytest.param(
            '[storage]\nplugin = "fileog"\n',
            "2:10",
            ["storage/fileog.so", "nearest known: filelog"],
            id="no-plugin",
        ),
        pytest.param(
            '[storage]\nplugin = "kafka"\n',
            "2:10",
            ["transport/kafka.so is one of kind transport"],
            id="wrong-kind",
        ),
        pytest.param(
            "[defaults]\nnum.partitions = 3\n",
            "2:5",
            ['defaults."num.partitions"'],
            id="not-quoted",
        ),
        pytest.param(
            '[defaults]\n"cleanup.policy" = "shred"\n',
            "2:20",
            ["one of: compact, delete", "shred"],
            id="a-default",
        ),
        pytest.param(
            '[defaults]\n"log.cleaner.max.compaction.lag.ms" = 5\n"log.cleaner.min.compaction.lag.ms" = 9\n',
            "2:39",
            ["min.compaction.lag.ms (9) > max.compaction.lag.ms (5)"],
            id="defaults-that-contradict",
        ),
        pytest.param(
            '[cluster]\npeer = "inner"\n',
            "2:8",
            ["no [transport.inner]", "transports are"],
            id="peer",
        ),
        pytest.param(
            '[cluster]\npeer = "http"\n',
            "2:8",
            ["transport http does not connect brokers"],
            id="peer-that-is-none",
        ),
        pytest.param(
            '[transport.kafka]\nlisten = "nowhere"\n',
            "2:10",
            ["HOST:PORT", "nowhere"],
            id="listen",
        ),
        pytest.param(
            '[transport.kafka]\nadvertise = "x"\n',
            "2:13",
            ["HOST:PORT", "'x'"],
            id="advertise",
        ),
        pytest.param(
            '[transport.kafka]\n[transport.http]\nlisten = "x"\n',
            "3:10",
            ["HOST:PORT", "'x'"],
            id="http",
        ),
        pytest.param(
            '[coordination]\nplugin = "zookeeper"\nconnect = "a:b"\n',
            "3:11",
            ["connect", "a:b"],
            id="connect",
        ),
        pytest.param(
            '[coordination]\nplugin = "zookeeper"\nconnect = "a:1"\ntls = true\n',
            "4:7",
            ["tls = false"],
            id="tls",
        ),
        pytest.param(
            FILTER + 'is = "above"\nto = "many"\n',
            "8:6",
            ["to: expected a number", "many"],
            id="to",
        ),
        pytest.param(FILTER + 'is = "matching"\nto = "("\n', "8:6", ["to: "], id="expression"),
        pytest.param(FILTER + 'is = "above"\n', "5:12", ["to: missing"], id="to-missing"),
        pytest.param(
            STREAM + 'operator = "filter"\nfield = "amount"\n',
            "6:9",
            ["field: ", "amount"],
            id="field",
        ),
        pytest.param(
            STREAM + 'operator = "route"\nfield = "key"\ntopics = ["x"]\n',
            "7:10",
            ["topics", "x"],
            id="routes",
        ),
        pytest.param(
            STREAM + 'operator = "map"\n',
            "5:12",
            ["keep, drop, rename and redact"],
            id="nothing-to-do",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_would_be_right(tmp_path, text, place, said):
    code, lines, config = check(tmp_path, text)
    assert code == BAD_CONFIG, lines
    assert len(lines) == 1 and lines[0].startswith(f"{config}:{place}: "), lines
    for words in said:
        assert words in lines[0]


def test_a_start_says_the_same_of_an_operators_options(tmp_path):
    config = tmp_path / "millrace.toml"
    config.write_text(FILTER + 'is = "above"\nto = "many"\n')
    refused = daemon("--config", config, "--set", f"broker.data={tmp_path / 'data'}",
                     "--set", "transport.kafka.listen=127.0.0.1:0",
                     "--set", "transport.http.listen=127.0.0.1:0")
    assert refused.returncode == BAD_CONFIG
    assert f"{config}:8:6: " in refused.stderr


def test_all_operators_that_are_wrong_are_told_at_once(tmp_path):
    code, lines, config = check(
        tmp_path,
        FILTER + 'is = "above"\nto = "many"\n[[stream.clean.steps]]\noperator = "map"\n'
        '[stream.other]\nsources = ["orders"]\n[[stream.other.steps]]\noperator = "filter"\nfield = "no"\n'
        '[transport.kafka]\nlisten = "nowhere"\n',
    )
    assert code == BAD_CONFIG
    assert sorted(line.split(": ")[0] for line in lines) == sorted(
        f"{config}:{place}" for place in ("8:6", "10:12", "15:9", "17:10")
    )


def test_a_set_is_a_place_too(tmp_path):
    refused = daemon("--set", f"broker.data={tmp_path}", "--set", "transport.kafka.listen=nowhere", "--check")
    assert refused.returncode == BAD_CONFIG
    assert refused.stderr.startswith("--set transport.kafka.listen=…: "), refused.stderr


@pytest.mark.parametrize("where", ["/no/such/millrace.toml", "."])
def test_a_file_that_cannot_be_read(tmp_path, where):
    path = tmp_path if where == "." else Path(where)
    refused = daemon("--config", path, "--check")
    assert refused.returncode == BAD_CONFIG
    assert refused.stderr.startswith(f"{path}: "), refused.stderr


def test_a_plugin_that_lies_too_deep_is_told(tmp_path):
    deep = PREFIX / "lib" / "millrace" / "plugins" / "operators"
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "tally.so").write_bytes((deep / "filter.so").read_bytes())
    code, lines, _ = check(tmp_path, f'[plugins]\npath = ["{mine}", "/not/there"]\n{STREAM}operator = "tally"\n')
    assert code == BAD_CONFIG
    assert f"{mine}/tally.so is there: a folder of plugins has one for each kind, operators/tally.so" in lines[0]
    assert "/not/there (not there)" in lines[0]


def test_a_check_touches_nothing(tmp_path):
    code, lines, _ = check(tmp_path, FILTER)
    assert (code, lines) == (0, [])
    assert not (tmp_path / "data").exists()
