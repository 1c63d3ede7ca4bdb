"""A load on a broker, for the time that our input lasts: each line of it is answered once more messages
are acknowledged. Then the checker of tests/cluster says what was lost, repeated or out of order; none of
it: exit code 0."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "cluster"), str(TESTS / "clients")]

from parts.history import History, violations  # noqa: E402: the path is set above
from parts.load import Load, read_log  # noqa: E402

MORE = 300


def main(address: str, topic: str) -> int:
    history = History()
    with Load(address, topic, history) as load:
        for _ in sys.stdin:
            load.wait_for_acknowledged(MORE)
            print("more", flush=True)
        load.finish()
    history.log = read_log(address, topic, 1)
    found = violations(history)
    print(f"{len(history.sent)} sent, {len(history.acknowledged)} acknowledged; {found[:5]}")
    return 1 if found or len(history.sent) != len(history.acknowledged) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
