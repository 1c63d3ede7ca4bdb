"""Streams over the admin API, and the steps that tests build for them."""

import time

from harness.broker import PREFIX, Millrace
from harness.client import DEADLINE_SECONDS
from harness.http import Answer, Http

STEPS = PREFIX / "tests" / "plugins" / "streams"
"""operators/*.so: pass, words, misbehaves, stamp_one, stamp_two."""


class Streams:
    """Bound to one broker, which may be started anew."""

    def __init__(self, broker: Millrace):
        self.broker = broker

    @property
    def http(self) -> Http:
        return Http(self.broker.http_address())

    def create(self, name: str, source: str, sink: str, step: str, **more: object) -> None:
        options = more.pop("options", {})
        spec = {
            "name": name,
            "sources": [source],
            "sink": sink,
            "steps": [{"operator": step, "options": options}],
            **more,
        }
        answer = self.http.ask("POST", "/admin/streams", spec)
        assert answer.status == 201, answer

    def ask(self, name: str, verb: str, body: object = None) -> Answer:
        return self.http.ask("POST", f"/admin/streams/{name}/{verb}", body)

    def describe(self, name: str) -> dict:
        return self.http.get(f"/admin/streams/{name}")

    def position(self, name: str) -> int:
        """Records of all partitions that are behind it."""
        tasks = self.describe(name)["tasks"]
        return sum(source["position"] for task in tasks for source in task["sources"])

    def wait_for_state(self, name: str, state: str, timeout: float = DEADLINE_SECONDS) -> dict:
        return self._wait(name, lambda fact: fact["state"] == state, state, timeout)

    def wait_for_position(self, name: str, position: int, timeout: float = DEADLINE_SECONDS) -> dict:
        def there(fact: dict) -> bool:
            assert fact["state"] != "failed", fact
            sources = [source for task in fact["tasks"] for source in task["sources"]]
            return sum(source["position"] for source in sources) >= position

        return self._wait(name, there, f"position {position}", timeout)

    def wait_until(self, name: str, condition, timeout: float = DEADLINE_SECONDS) -> dict:
        return self._wait(name, condition, "such a stream", timeout)

    def _wait(self, name, condition, what, timeout) -> dict:
        deadline = time.monotonic() + timeout
        while True:
            fact = self.describe(name)
            if condition(fact):
                return fact
            self.broker.assert_running()
            assert time.monotonic() < deadline, f"no {what} in {timeout} s: {fact}"
            self.broker._ended_meanwhile()
