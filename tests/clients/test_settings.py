"""Settings of topics and brokers: described, replaced, changed one by one, refused."""

import pytest

from conftest import PARTITIONS
from harness.client import (
    INVALID_CONFIG,
    MESSAGE_TOO_LARGE,
    UNKNOWN_TOPIC_OR_PARTITION,
    ClientError,
)
from harness.records import Record

OF_TOPIC, OF_BROKER_FILE, DEFAULT = 1, 4, 5


def value_of(client, topic: str, name: str) -> tuple[str, int]:
    setting = client.describe(topic)[name]
    return setting.value, setting.source


@pytest.mark.needs("configs")
def test_a_topic_shows_what_was_set_and_what_is_default(client, topic):
    client.create_topic(topic, 1, {"retention.ms": "1234567", "cleanup.policy": "compact"})
    settings = client.describe(topic)
    shown = {name: (one.value, one.source) for name, one in settings.items()}
    expected = {
        "retention.ms": ("1234567", OF_TOPIC),
        "cleanup.policy": ("compact", OF_TOPIC),
        "segment.bytes": ("1073741824", DEFAULT),
        "max.message.bytes": ("1048588", DEFAULT),
        "compression.type": ("producer", DEFAULT),
        "unclean.leader.election.enable": ("false", DEFAULT),
    }
    assert {name: shown.get(name) for name in expected} == expected
    assert not any(one.read_only for one in settings.values())


@pytest.mark.needs("configs", "synonyms")
def test_a_setting_names_what_it_may_come_from(client, topic):
    client.create_topic(topic, 1, {"max.message.bytes": "2000000"})
    settings = client.describe(topic)
    assert settings["max.message.bytes"].synonyms == (
        ("max.message.bytes", "2000000", OF_TOPIC),
        ("message.max.bytes", "1048588", DEFAULT),
    )
    assert settings["retention.bytes"].synonyms == (("log.retention.bytes", "-1", DEFAULT),)


@pytest.mark.needs("configs")
def test_a_broker_shows_its_settings(client, broker):
    settings = client.describe_broker(broker.id)
    partitions = settings["num.partitions"]
    assert (partitions.value, partitions.source) == (str(PARTITIONS), OF_BROKER_FILE)
    assert partitions.read_only
    assert settings["message.max.bytes"].value == "1048588"
    assert not settings["message.max.bytes"].read_only


@pytest.mark.needs("configs", "alter")
def test_altering_replaces_all_settings_of_a_topic(client, topic):
    client.create_topic(topic, 1, {"retention.ms": "1000000", "segment.bytes": "2000000"})
    client.alter(topic, {"retention.ms": "3000000", "max.message.bytes": "5000"})
    assert value_of(client, topic, "retention.ms") == ("3000000", OF_TOPIC)
    assert value_of(client, topic, "max.message.bytes") == ("5000", OF_TOPIC)
    assert value_of(client, topic, "segment.bytes") == ("1073741824", DEFAULT)


@pytest.mark.needs("configs", "adjust")
def test_adjusting_changes_one_setting(client, topic):
    client.create_topic(topic, 1, {"retention.ms": "1000000", "cleanup.policy": "compact"})
    client.adjust(topic, "set", "segment.bytes", "2000000")
    client.adjust(topic, "append", "cleanup.policy", "delete")
    assert value_of(client, topic, "segment.bytes") == ("2000000", OF_TOPIC)
    assert value_of(client, topic, "cleanup.policy") == ("compact,delete", OF_TOPIC)
    assert value_of(client, topic, "retention.ms") == ("1000000", OF_TOPIC)
    client.adjust(topic, "subtract", "cleanup.policy", "compact")
    client.adjust(topic, "delete", "retention.ms")
    assert value_of(client, topic, "cleanup.policy") == ("delete", OF_TOPIC)
    assert value_of(client, topic, "retention.ms") == ("604800000", DEFAULT)


BAD = [
    ("retention.ms", "soon"),
    ("cleanup.policy", "shred"),
    ("segment.bytes", "-1"),
    ("no.such.setting", "1"),
]


@pytest.mark.needs("configs", "adjust")
@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_adjustment_is_refused_and_changes_nothing(client, topic, name, value):
    client.create_topic(topic, 1, {"segment.bytes": "2000000"})
    before = client.describe(topic)
    with pytest.raises(ClientError) as refused:
        client.adjust(topic, "set", name, value)
    assert refused.value.code == INVALID_CONFIG
    assert client.describe(topic) == before


@pytest.mark.needs("configs", "alter", "refusals")
@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_replacement_is_refused_and_changes_nothing(client, topic, name, value):
    client.create_topic(topic, 1, {"segment.bytes": "2000000"})
    before = client.describe(topic)
    with pytest.raises(ClientError) as refused:
        client.alter(topic, {"retention.ms": "1000000", name: value})
    assert refused.value.code == INVALID_CONFIG
    assert client.describe(topic) == before


@pytest.mark.needs("topics")
@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_topic_with_a_bad_setting_is_not_created(client, topic, name, value):
    with pytest.raises(ClientError) as refused:
        client.create_topic(topic, 1, {name: value})
    assert refused.value.code == INVALID_CONFIG
    assert topic not in client.list_topics()


@pytest.mark.needs("adjust")
def test_the_settings_of_an_unknown_topic_cannot_be_changed(client, topic):
    with pytest.raises(ClientError) as refused:
        client.adjust(topic, "set", "retention.ms", "1000000")
    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.needs("adjust", "error-codes")
def test_a_changed_limit_is_in_force_at_once(client, topic):
    client.create_topic(topic, 1)
    large = [Record(b"key", bytes(20_000))]
    client.produce(topic, large)
    client.adjust(topic, "set", "max.message.bytes", "10000")
    with pytest.raises(ClientError) as refused:
        client.produce(topic, large)
    assert refused.value.code == MESSAGE_TOO_LARGE
    client.adjust(topic, "delete", "max.message.bytes")
    client.produce(topic, large)
    assert client.bounds(topic, 0) == (0, 2)
