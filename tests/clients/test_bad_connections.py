"""Bytes that are not Kafka's protocol end the connection they came on, with a line in the log, and
no other."""

import random
import ssl
import struct

import pytest

from conftest import PARTITIONS
from harness.confluent import Confluent
from harness.load import Load
from harness.wire import RawConnection, api_versions_request

pytestmark = pytest.mark.fault


def tls_client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(
            incoming, outgoing, server_hostname="broker"
        ).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake that needs no answer")


BAD_BYTES = {
    "garbage": random.Random(1).randbytes(4096),
    "garbage-in-a-frame": struct.pack(">i", 400) + random.Random(2).randbytes(400),
    "unknown-api": struct.pack(">ihhih4s", 14, 9999, 0, 1, 4, b"test"),
    "negative-length": b"\xff" * 4 + api_versions_request(1)[4:],
    "2-gb-length": b"\x7f\xff\xff\xff" + api_versions_request(1)[4:],
    "empty-frame": bytes(4),
    "http-get": b"GET / HTTP/1.1\r\nHost: broker\r\nAccept: */*\r\n\r\n",
    "tls-client-hello": tls_client_hello(),
}


@pytest.mark.parametrize("kind", BAD_BYTES)
def test_bad_bytes_end_only_their_connection(broker, kind):
    with RawConnection(broker.address) as neighbour, RawConnection(broker.address) as bad:
        neighbour.ask_api_versions(1)
        bad.send(BAD_BYTES[kind])
        assert bad.closed_by_broker()
        broker.wait_for_log_line(f":{bad.port}")
        neighbour.ask_api_versions(2)


def test_half_a_request_ends_only_its_connection(broker):
    with RawConnection(broker.address) as neighbour, RawConnection(broker.address) as bad:
        neighbour.ask_api_versions(1)
        bad.send(api_versions_request(1)[:10])
        neighbour.ask_api_versions(2)  # the broker waits for the rest, and serves others meanwhile
        bad.finish_sending()
        assert bad.closed_by_broker()
        if broker.logs_half_a_request:
            broker.wait_for_log_line(f":{bad.port}")
        neighbour.ask_api_versions(3)


def test_a_request_in_single_bytes_is_answered(broker):
    with RawConnection(broker.address) as slow:
        request = api_versions_request(5)
        for at in range(len(request)):
            slow.send(request[at : at + 1])
        assert struct.unpack_from(">i", slow.receive_frame()) == (5,)


def test_many_bad_connections_do_not_disturb_a_producer(own_broker, topic):
    client = Confluent(own_broker.address)
    client.create_topic(topic, PARTITIONS)
    with Load(own_broker.address, topic, PARTITIONS, idempotent=True) as load:
        load.wait_for_acknowledged(1000)
        for _ in range(20):
            for data in BAD_BYTES.values():
                with RawConnection(own_broker.address) as bad:
                    bad.send(data)
        load.wait_for_acknowledged(1000)
        load.finish()
    own_broker.assert_running()
    load.assert_all_stored(client.read_all(topic, PARTITIONS), once=True)
