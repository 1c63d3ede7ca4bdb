"""The checker finds what it is for, in histories that a broken cluster would leave."""

import pytest

from parts.history import Acknowledged, History, Read, Sent, violations


def sound() -> History:
    """Six messages of two keys, all acknowledged but the last, which is there all the same."""
    keys = ["a", "b"]
    history = History(sent=[Sent(number, keys[number % 2]) for number in range(6)])
    history.log = {0: [(0, 0), (1, 2), (3, 4)], 1: [(0, 1), (1, 3), (2, 5)]}
    history.acknowledged = [
        Acknowledged(number, partition, offset)
        for partition, records in history.log.items()
        for offset, number in records
        if number != 5
    ]
    history.reads = [
        Read("one", 0, 0, 0), Read("one", 1, 0, 1), Read("two", 0, 0, 0), Read("one", 0, 1, 2)
    ]
    return history


def lost(history: History) -> None:
    history.log[0].remove((1, 2))
    history.reads.clear()


def lost_at_the_end(history: History) -> None:
    history.log[0].pop()


def lost_with_its_partition(history: History) -> None:
    history.log[0] = []
    history.reads.clear()


def repeated(history: History) -> None:
    history.log[0].append((4, 4))


def repeated_unacknowledged(history: History) -> None:
    history.log[1].append((3, 5))


def reordered(history: History) -> None:
    """A retry that went in behind its successor."""
    history.log[0][1:] = [(1, 4), (3, 2)]
    history.acknowledged = [one for one in history.acknowledged if one.number not in (2, 4)]
    history.reads.clear()


def in_another_place(history: History) -> None:
    history.log[0][2] = (2, 4)


def an_offset_given_twice(history: History) -> None:
    """A leader that was deposed acknowledged what its successor's log has not."""
    history.sent.append(Sent(6, "a"))
    history.acknowledged.append(Acknowledged(6, 0, 3))


def a_key_in_two_partitions(history: History) -> None:
    history.log[0].pop()
    history.log[1].append((3, 4))
    history.acknowledged = [one for one in history.acknowledged if one.number != 4]


def never_sent(history: History) -> None:
    history.log[0].append((4, 77))


def shown_and_gone(history: History) -> None:
    """A reader saw what was not on all replicas yet."""
    history.reads.append(Read("two", 0, 4, 5))


def shown_otherwise(history: History) -> None:
    history.reads.append(Read("two", 1, 1, 5))


def back_in_time(history: History) -> None:
    history.reads.append(Read("one", 0, 0, 0))


def shown_twice(history: History) -> None:
    history.reads.append(Read("one", 0, 1, 2))


BREAKS = {
    lost: "message 2 was acknowledged at 0:1 and is lost",
    lost_at_the_end: "message 4 was acknowledged at 0:3 and is lost",
    lost_with_its_partition: "message 0 was acknowledged at 0:0 and is lost",
    repeated: "message 4 is in the log 2 times",
    repeated_unacknowledged: "message 5 is in the log 2 times",
    reordered: "key a: message 2 at 0:3 stands after 4",
    in_another_place: "message 4 was acknowledged at 0:3, where nothing is",
    an_offset_given_twice: "messages 4 and 6 were both acknowledged at 0:3",
    a_key_in_two_partitions: "key a is in partitions 0 and 1",
    never_sent: "message 77 is in the log and was never sent",
    shown_and_gone: "two was shown message 5 at 0:4; nothing is there now",
    shown_otherwise: "two was shown message 5 at 1:1; message 3 is there now",
    back_in_time: "one went back from 0:1 to 0:0",
    shown_twice: "one went back from 0:1 to 0:1",
}


def test_a_sound_history_is_sound():
    assert violations(sound()) == []


def test_what_was_not_acknowledged_may_be_missing():
    history = sound()
    history.log[1].pop()
    assert violations(history) == []


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.__name__)
def test_a_broken_one_is_not(broken):
    history = sound()
    broken(history)
    assert BREAKS[broken] in violations(history)
