"""What was acknowledged survives kill -9 and SIGTERM, with a client that keeps sending through
both."""

import pytest

from conftest import PARTITIONS
from harness.confluent import Confluent
from harness.load import Load
from harness.wire import RawConnection

pytestmark = pytest.mark.fault


@pytest.fixture(params=[False, True], ids=["plain", "idempotent"])
def idempotent(request) -> bool:
    return request.param


@pytest.fixture
def load(own_broker, topic, idempotent):
    Confluent(own_broker.address).create_topic(topic, PARTITIONS)
    with Load(own_broker.address, topic, PARTITIONS, idempotent=idempotent) as running:
        yield running


def test_kill_9_under_load_loses_nothing_acknowledged(own_broker, load, topic, idempotent, request):
    for _ in range(request.config.getoption("--kills")):
        load.wait_for_acknowledged(5000)
        own_broker.kill()
        own_broker.start()
    load.wait_for_acknowledged(5000)
    load.finish()
    stored = Confluent(own_broker.address).read_all(topic, PARTITIONS)
    load.assert_all_stored(stored, once=idempotent)


def test_sigterm_under_load_is_a_clean_stop_in_time(own_broker, load, topic, idempotent):
    load.wait_for_acknowledged(5000)
    with RawConnection(own_broker.address) as idle, RawConnection(own_broker.address) as polling:
        idle.ask_api_versions()
        polling.send_fetch(topic, 0, offset=1 << 40, wait_ms=60_000)
        code, seconds = own_broker.stop()
    assert code == own_broker.stop_code, own_broker.log_tail()
    assert seconds <= own_broker.stop_seconds_max, own_broker.log_tail()
    own_broker.start()
    load.wait_for_acknowledged(5000)
    load.finish()
    stored = Confluent(own_broker.address).read_all(topic, PARTITIONS)
    load.assert_all_stored(stored, once=idempotent)


def test_R03_no_offset_is_given_twice_while_records_are_deleted(own_broker, load, topic, idempotent):
    """Everything up to the high watermark is deleted again and again, over kills and clean stops."""
    for kill in (True, False):
        for _ in range(10):
            load.wait_for_acknowledged(200)
            client = Confluent(own_broker.address)
            starts = [client.trim(topic, partition, -1) for partition in range(PARTITIONS)]
            client.close()
        own_broker.kill() if kill else own_broker.stop()
        own_broker.start()
        client = Confluent(own_broker.address)
        for partition, start in enumerate(starts):
            assert client.bounds(topic, partition)[0] >= start, "what was deleted stays away"
        client.close()
    load.wait_for_acknowledged(200)
    load.finish()
    places = [(partition, offset) for partition, offset, _ in load.acknowledged]
    assert len(set(places)) == len(places), "an offset was given twice"
    for partition in range(PARTITIONS):
        offsets = [offset for place, offset in places if place == partition]
        assert offsets == sorted(offsets)
