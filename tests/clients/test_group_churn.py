"""Two hundred members of one group that come and go at random: a partition never has two owners in
one generation or epoch, and no commit is lost."""

import pytest

from harness import confluent
from harness.churn import Churn

PARTITIONS = 60
MEMBERS = 200
TOPIC = "churn"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_that_come_and_go(fast_broker, protocol, request):
    """A few seconds in `ci`, two minutes with all clients."""
    seconds = 120 if request.config.getoption("--clients") == "all" else 3
    topic = f"{TOPIC}-{protocol}"
    confluent.create_topic(fast_broker.address, topic, PARTITIONS)
    churn = Churn(fast_broker.address, f"group-{topic}", topic, PARTITIONS, protocol)
    told = churn.run(MEMBERS, seconds)
    assert told.joins > MEMBERS, told
    assert told.commits > 10 * seconds, told
    assert told.assignments > PARTITIONS, told
