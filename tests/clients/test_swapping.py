"""A plugin is exchanged or missing; the rest is as before."""

import pytest

from conftest import PARTITIONS
from harness.broker import Millrace, copy_without_plugin
from harness.client import UNKNOWN_SERVER_ERROR, UNSUPPORTED_COMPRESSION_TYPE, ClientError
from harness.confluent import Confluent
from harness.records import CODECS, assert_same_and_in_order, numbered_records

pytestmark = pytest.mark.millrace


@pytest.fixture
def start(tmp_path):
    """Starts brokers as a test wants them, and ends them after it."""
    started = []

    def start_one(**how) -> Millrace:
        folder = tmp_path / f"broker-{len(started)}"
        started.append(Millrace(folder, {"num.partitions": PARTITIONS}, **how))
        return started[-1].start()

    yield start_one
    for one in started:
        one.close()


def assert_round_trip(client, topic: str, codec: str) -> None:
    sent = numbered_records(1000, headers=client.fixed_headers)
    client.produce(topic, sent, codec=codec)
    assert_same_and_in_order(client.seen(sent), client.read_all(topic, PARTITIONS))


@pytest.mark.parametrize("storage", ["filelog", "memory"])
def test_either_storage_serves_all_codecs(start, storage):
    client = Confluent(start(settings={"storage.plugin": storage}).address)
    for codec in CODECS:
        client.create_topic(codec, PARTITIONS)
        assert_round_trip(client, codec, codec)


@pytest.mark.needs("error-codes", "lz4")
def test_a_missing_codec_is_refused_and_the_rest_works(start, tmp_path, client_kind):
    broker = start(prefix=copy_without_plugin("compression/gzip", tmp_path / "prefix"))
    client = client_kind(broker.address)
    try:
        client.create_topic("compressed", PARTITIONS)
        records = numbered_records(1000, headers=client.fixed_headers)
        with pytest.raises(ClientError) as refused:
            client.produce("compressed", records, codec="gzip")
        # Clients from before zstd, and some of today's, have no name for the code.
        assert refused.value.code in {UNSUPPORTED_COMPRESSION_TYPE, UNKNOWN_SERVER_ERROR}
        assert_round_trip(client, "compressed", "lz4")
    finally:
        client.close()
    broker.assert_running()
