"""Topics that come, or do not come, by themselves."""

from conftest import PARTITIONS
from harness.confluent import Confluent
from harness.kcat import Kcat


def test_nothing_is_created_when_automatic_creation_is_off(broker_kind, tmp_path, topic):
    own = broker_kind(tmp_path, {"auto.create.topics.enable": False})
    try:
        kcat = Kcat(own.start().address)
        for _ in range(2):
            assert "Unknown topic" in kcat.listed(topic)["error"]
        Confluent(own.address).create_topic(topic, PARTITIONS)
        assert len(kcat.listed(topic)["partitions"]) == PARTITIONS
    finally:
        own.close()
