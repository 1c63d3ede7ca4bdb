"""Topics that keep their records in an old format, and every client with them."""

import pytest

from conftest import PARTITIONS
from harness.records import assert_same_and_in_order, numbered_records
from harness.wire import RawConnection, magics_of

pytestmark = pytest.mark.old_formats

RECORDS = 100
FORMATS = {"0.9.0": 0, "0.10.0": 1, "0.11.0": 2}


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_an_old_format_is_written_and_read_by_all(client, clients, broker, topic, codec, version):
    client.create_topic(topic, PARTITIONS, {"message.format.version": version})
    sent = numbered_records(RECORDS, headers=())  # the old formats have none
    idempotent = False if "idempotence" in client.abilities else None
    client.produce(topic, sent, codec=codec, idempotent=idempotent)
    with RawConnection(broker.address) as connection:
        assert magics_of(connection.fetch_batches(topic, 0)) == {FORMATS[version]}
    needed = [] if version == "0.11.0" else ["old-formats"]
    if (codec, version) == ("lz4", "0.9.0"):
        needed.append("lz4-of-v0")
    for reader in clients.readers(codec, *needed):
        assert_same_and_in_order(reader.seen(sent), reader.read_all(topic, PARTITIONS))
