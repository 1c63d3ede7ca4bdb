"""`millrace log dump|verify|repair` on the files of a broker: one that runs, one that was killed,
logs that were torn and damaged since, and what the broker and clients make of a repaired log."""

import base64
import json
import random
import re
import shutil
from pathlib import Path

import pytest

from harness import dump
from harness.broker import Millrace
from harness.confluent import Confluent
from harness.fleet import Java
from harness.json_doc import differences, shapes
from harness.paths import SOURCE
from harness.records import numbered_records
from harness.tool import Tool, run

pytestmark = [pytest.mark.fault, pytest.mark.millrace]

CORRUPT = 65
RECORDS = 200


class Stored:
    """A broker with records in `orders`, sent twenty at a time, in several segments."""

    def __init__(self, folder: Path):
        self.broker = Millrace(folder, {"num.partitions": 1, "log.segment.bytes": 16384})
        self.data = folder / "data"
        self.folder = self.data / "orders-0"

    def fill(self) -> None:
        self.broker.start()
        client = Confluent(self.broker.address)
        client.create_topic("orders", 1)
        for at in range(0, RECORDS, 20):
            client.produce("orders", numbered_records(RECORDS)[at : at + 20])
        client.close()

    def logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.log"))

    def verify(self) -> list[dict]:
        done = run("-o", "json", "log", "verify", self.data)
        reports = [json.loads(line) for line in done.output.splitlines()]
        wrong = [one for one in reports if one["state"] != "ok"]
        assert done.code == (CORRUPT if wrong else 0), done.errors
        return reports

    def orders(self) -> dict:
        return next(one for one in self.verify() if one["partition"] == "orders-0")

    def batches(self) -> list[dict]:
        done = run("-o", "json", "log", "dump", self.folder)
        lines = [json.loads(line) for line in done.output.splitlines()]
        return [line for line in lines if line["kind"] == "batch"]

    def read(self) -> list[int]:
        client = Confluent(self.broker.address)
        offsets = [record.offset for record in client.read("orders", 0)]
        client.close()
        return offsets


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The folder of a broker that was filled and stopped."""
    made = Stored(tmp_path_factory.mktemp("filled") / "broker")
    try:
        made.fill()
        assert made.broker.stop()[0] == 0
    finally:
        made.broker.close()
    return made.broker.folder


@pytest.fixture
def stored(filled, tmp_path):
    """A broker of its own over a copy of that."""
    shutil.copytree(filled, tmp_path / "broker")
    copy = Stored(tmp_path / "broker")
    try:
        yield copy
    finally:
        copy.broker.close()


def test_a_running_broker_is_verified_and_not_repaired(stored):
    stored.broker.start()
    done = run("log", "verify", stored.data)
    assert done.code == 0, done.output
    holder = f"in use by process {stored.broker.process.pid}"
    assert holder in done.errors
    assert re.search(rf"orders-0: ok, offsets 0 to {RECORDS}, ", done.output)
    for option in ([], ["--execute"]):
        refused = run("log", "repair", stored.data, *option)
        assert refused.code == 1 and holder in refused.errors
    assert stored.read() == list(range(RECORDS))


def test_a_torn_tail_is_found_and_cut(stored):
    stored.broker.start()
    Confluent(stored.broker.address).produce("orders", numbered_records(20))
    stored.broker.kill()
    assert stored.orders()["state"] == "ok"
    last = stored.logs()[-1]
    batch = stored.batches()[-1]
    with last.open("r+b") as log:
        log.truncate(batch["position"] + batch["size"] - 7)

    report = stored.orders()
    assert report["state"] == "torn"
    (finding,) = [one for one in report["findings"] if one["kind"] == "torn"]
    assert finding["file"] == str(last)
    assert (finding["position"], finding["bytes"]) == (batch["position"], batch["size"] - 7)
    assert report["end_offset"] == batch["base_offset"]
    text = run("log", "verify", stored.folder).output
    place = f"torn tail at {last}:{batch['position']} ({batch['size'] - 7} bytes)"
    assert place in text

    torn = last.read_bytes()
    planned = run("-o", "json", "log", "repair", stored.data)
    for line in planned.output.splitlines():
        assert differences(shapes()["log repair"], json.loads(line)) == []
    dry = run("log", "repair", stored.data)
    assert dry.code == 0 and "would cut" in dry.output and "--execute" in dry.output, dry.errors
    assert last.read_bytes() == torn
    done = run("log", "repair", stored.data, "--execute")
    assert done.code == 0, done.errors
    assert last.read_bytes() == torn[: batch["position"]]
    kept = stored.folder / f"{batch['base_offset']:020}.damaged"
    assert kept.read_bytes() == torn[batch["position"] :]
    assert stored.orders()["state"] == "ok"

    stored.broker.start()
    client = Confluent(stored.broker.address)
    client.produce("orders", numbered_records(1))
    client.close()
    assert stored.read() == list(range(batch["base_offset"] + 1))
    assert "cut a torn tail" not in stored.broker.log_text()
    assert stored.broker.stop()[0] == 0


def test_what_is_only_called_as_a_segment_costs_nothing(stored):
    """No broker serves a partition with such a file, a folder, or a checkpoint that is none."""
    (stored.folder / f"{30:020}.log").touch()
    (stored.folder / f"{RECORDS:020}.snapshot").unlink(missing_ok=True)
    (stored.folder / f"{RECORDS:020}.snapshot").mkdir()
    (stored.data / "recovery-point-offset-checkpoint").write_text("garbage")
    report = next(
        json.loads(line)
        for line in run("-o", "json", "log", "verify", stored.data).output.splitlines()
        if '"orders-0"' in line
    )
    assert report["state"] == "beside"
    planned = run("-o", "json", "log", "repair", stored.data)
    first = json.loads(planned.output.splitlines()[0])
    assert (first["partition"], len(first["steps"])) == ("", 1)
    for line in planned.output.splitlines():
        assert differences(shapes()["log repair"], json.loads(line)) == []
    assert (stored.folder / f"{30:020}.log").exists(), "shown, not done"
    assert run("log", "repair", stored.data, "--execute").code == 0
    assert stored.orders()["state"] == "ok"
    stored.broker.start()
    assert stored.read() == list(range(RECORDS))


def test_damage_in_the_middle_costs_its_batch_alone(stored):
    lost = stored.batches()[1]
    log = Path(lost["file"])
    damaged = bytearray(log.read_bytes())
    damaged[lost["position"] + lost["size"] // 2] ^= 0xFF
    log.write_bytes(damaged)

    (finding,) = stored.orders()["findings"]
    assert finding["kind"] == "damaged"
    assert (finding["from_offset"], finding["to_offset"]) == (
        lost["base_offset"],
        lost["last_offset"],
    )
    left = run("log", "repair", stored.data, "--execute")
    assert left.code == CORRUPT and "--skip-damaged" in left.output
    assert log.read_bytes() == damaged
    done = run("log", "repair", stored.data, "--skip-damaged", "--execute")
    assert done.code == 0, done.errors
    assert stored.orders()["state"] == "ok"
    assert stored.orders()["end_offset"] == RECORDS

    kept = [
        offset
        for offset in range(RECORDS)
        if not lost["base_offset"] <= offset <= lost["last_offset"]
    ]
    stored.broker.start()
    assert stored.read() == kept
    java = Java(stored.broker.address)
    try:
        assert [record.offset for record in java.read("orders", 0)] == kept
    finally:
        java.close()
    assert stored.broker.stop()[0] == 0


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_damaged_is_told_and_can_be_repaired(stored, seed):
    """Bytes are turned over, cut off, put behind the end, or all of them are another file's."""
    chance = random.Random(seed)
    files = sorted(path for path in stored.folder.iterdir() if path.is_file())
    files.remove(stored.folder / "partition.metadata")  # what the topic's id was, the cluster alone knows
    for path in chance.sample(files, chance.randint(1, 2)):
        content = bytearray(path.read_bytes())
        place = chance.randrange(max(len(content), 1))
        match chance.choice(["turn over", "cut", "append", "swap", "empty"]):
            case "turn over" if content:
                content[place] ^= 1 << chance.randrange(8)
            case "cut":
                del content[place:]
            case "append":
                content += chance.randbytes(chance.randint(1, 5000))
            case "swap":
                content = chance.choice(files).read_bytes()
            case _:
                content.clear()
        path.write_bytes(content)

    for path in files:
        dumped = run("log", "dump", path)
        assert dumped.code in (0, 64, CORRUPT), (path, dumped.errors)
        assert dumped.code == 0 or str(path) in dumped.errors + dumped.output, (path, dumped.errors)
    verified = run("log", "verify", stored.data)
    assert verified.code in (0, CORRUPT), verified.errors
    before = {path: path.read_bytes() for path in files}
    assert run("log", "repair", stored.data, "--skip-damaged").code in (0, CORRUPT)
    assert before == {path: path.read_bytes() for path in files}, "shown, not done"
    repaired = run("log", "repair", stored.data, "--skip-damaged", "--execute")
    assert repaired.code == 0, (repaired.output, repaired.errors)
    again = run("log", "verify", stored.data)
    assert again.code == 0, (verified.output, repaired.output, again.output, again.errors)
    stored.broker.start()
    offsets = stored.read()
    assert offsets == sorted(set(offsets)) and set(offsets) <= set(range(RECORDS))
    if verified.code == 0:
        assert offsets == list(range(RECORDS)), verified.output
    assert stored.broker.stop()[0] == 0


def test_apache_kafka_dumps_the_same_batches(stored):
    logs = stored.logs()
    pattern = re.compile(
        r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* position: (\d+) .* size: (\d+) .*"
        r" crc: (\d+) isvalid: true",
        re.MULTILINE,
    )
    theirs = [tuple(map(int, found)) for found in pattern.findall(dump.dump(logs))]
    names = ("base_offset", "last_offset", "count", "position", "size", "crc")
    ours = [tuple(batch[name] for name in names) for batch in stored.batches()]
    # A producer that is held up makes more of them.
    assert len(ours) >= RECORDS // 20
    assert sum(batch["count"] for batch in stored.batches()) == RECORDS
    assert ours == theirs


def test_records_are_dumped_and_what_groups_commit_is_decoded(stored):
    stored.broker.start()
    tool = Tool(stored.broker.address)
    tool.text("group", "reset", "readers", "--topic", "orders", "--to-earliest", "--execute")
    folder = max(
        stored.data.glob("__consumer_offsets-*"),
        key=lambda one: sum(log.stat().st_size for log in one.glob("*.log")),
    )
    done = run("-o", "json", "log", "dump", folder, "--records", "--decode")
    assert done.code == 0, done.errors
    lines = [json.loads(line) for line in done.output.splitlines()]
    commits = [
        line["decoded"]
        for line in lines
        if line["kind"] == "record" and line["decoded"]["name"] == "OffsetCommitKey"
    ]
    assert commits[-1]["key"] == {"group": "readers", "topic": "orders", "partition": 0}
    assert commits[-1]["value"]["offset"] == 0

    done = run("log", "dump", stored.folder, "--records", "--from", 40, "--to", 59)
    assert done.code == 0, done.errors
    assert done.output.count("    record offset=") == 20
    assert stored.broker.stop()[0] == 0


def bytes_of(value: str | dict | None) -> bytes | None:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    return None if value is None else value.encode()


def from_base64(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)


BATCH = {
    "position": "position",
    "size": "size",
    "magic": "magic",
    "last_offset": "lastOffset",
    "codec": "compression",
    "max_timestamp": "maxTimestamp",
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "base_sequence": "baseSequence",
    "leader_epoch": "leaderEpoch",
    "transactional": "transactional",
    "crc": "crc",
}


@pytest.mark.parametrize(
    "release", sorted(path.name for path in (SOURCE / "tests/golden/segments").iterdir())
)
def test_what_kafka_stored_is_dumped_as_kafka_reads_it(release):
    """In all formats, codecs and releases: batches, records, and what Kafka's own topics say."""
    stem = len(".records.jsonl")
    known = sorted((SOURCE / "tests/golden/segments" / release).glob("*/*.records.jsonl"))
    logs = [path.with_name(path.name[:-stem] + ".log") for path in known]
    logs = {str(log): path for log, path in zip(logs, known) if log.exists()}
    done = run("-o", "json", "log", "dump", "--records", *logs)
    assert done.code == 0, done.errors
    lines: dict[str, list[dict]] = {log: [] for log in logs}
    for line in map(json.loads, done.output.splitlines()):
        lines[line["file"]].append(line)
    for log, path in logs.items():
        theirs = [json.loads(line) for line in path.read_text().splitlines()]
        ours = lines[log]
        assert [line["kind"] for line in ours] == [
            {"batch": "batch", "rec": "record"}[one["t"]] for one in theirs
        ], log
        for our, their in zip(ours, theirs):
            if our["kind"] == "batch":
                names = {name: of for name, of in BATCH.items() if of in their and name in our}
                assert [our[name] for name in names] == [their[of] for of in names.values()], log
                continue
            assert (our["offset"], our["timestamp"]) == (their["offset"], their["timestamp"]), log
            assert bytes_of(our["key"]) == from_base64(their["key"]), log
            assert bytes_of(our["value"]) == from_base64(their["value"]), log
            assert len(our["headers"]) == len(their.get("headers", [])), log
            marker = their.get("controlType")
            assert our.get("control") == (marker.lower() if marker else None), log


@pytest.mark.parametrize(
    "log",
    sorted((SOURCE / "tests/golden/segments").glob("*/__*_[os]*/*.decoded.jsonl")),
    ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}",
)
def test_kafkas_own_topics_are_decoded(log):
    stored = log.with_name(log.name[: -len(".decoded.jsonl")] + ".log")
    done = run("-o", "json", "log", "dump", stored, "--records", "--decode")
    assert done.code == 0, done.errors
    ours = {
        line["offset"]: line["decoded"]
        for line in map(json.loads, done.output.splitlines())
        if line["kind"] == "record" and "decoded" in line
    }
    theirs = [json.loads(line) for line in log.read_text().splitlines()]
    assert theirs and len(ours) == len(theirs)
    for their in theirs:
        our = ours[their["offset"]]
        assert (our["name"], our["key"]) == (their["keySchema"], their["key"])
        assert our["value"] == their.get("value")
