"""The checker is worth something: where a plugin of `tests/plugins/broken` stands in for the shipped
one, it finds what that does; and the same finds nothing with what is shipped."""

import pytest
from harness.broker import PREFIX

from parts import scenarios

BROKEN = PREFIX / "tests" / "plugins" / "broken"
CASES = [
    pytest.param("transport.kafka.plugin", "early", scenarios.after_a_leader_died_alone, "is lost"),
    pytest.param(
        *("transport.kafka.plugin", "epochless", scenarios.after_a_tail_of_one, "was never sent"),
        marks=pytest.mark.slow,
    ),
    pytest.param(
        *("coordination.plugin", "unfenced", scenarios.after_a_zombie, "is lost"),
        marks=pytest.mark.slow,
    ),
    pytest.param("storage.plugin", "reusing", scenarios.after_nothing, "is lost"),
]


@pytest.mark.parametrize("option, plugin, scenario, finding", CASES)
def test_the_checker_finds(make_cluster, topic, option, plugin, scenario, finding):
    settings = {"plugins.path": f'["{BROKEN}"]', option: plugin}
    cluster = make_cluster(settings=settings, session_ms=scenarios.LONG_SESSION_MS)
    found = scenario(cluster, topic)
    print(f"{len(found)} violations: {found[:3]}")
    assert any(finding in one for one in found), found[:5]


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(scenarios.after_a_leader_died_alone, marks=pytest.mark.slow),
        scenarios.after_a_zombie,
    ],
)
def test_nothing_is_found_with_what_is_shipped(make_cluster, topic, scenario):
    cluster = make_cluster(session_ms=scenarios.LONG_SESSION_MS)
    assert scenario(cluster, topic) == []
    cluster.end()


def test_L01_what_one_alone_had_is_never_shown(make_cluster, topic):
    """KAFKA-14704: a leader's tail that was not replicated goes when others have led."""
    cluster = make_cluster(session_ms=scenarios.LONG_SESSION_MS)
    assert scenarios.after_a_tail_of_one(cluster, topic) == []
    cluster.end()
