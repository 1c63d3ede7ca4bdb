"""Many members of one group in one process, each on a connection of its own, who come, work, leave and
die at random. They only speak the groups' part of the protocol."""

import asyncio
import random
import struct
from dataclasses import dataclass, field

from harness import groups
from harness.groups import NONE, Beat, Joined, Question

SESSION_MS = 2000
REBALANCE_MS = 2000
ANSWER_SECONDS = 30


@dataclass
class Told:
    joins: int = 0
    leaves: int = 0
    deaths: int = 0
    assignments: int = 0
    commits: int = 0


class Gone(Exception):
    """The broker does not know the member (any more): it begins anew."""


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, address: str) -> "Connection":
        host, port = address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, question: Question):
        self.writer.write(question.frame(7, "churn"))
        async with asyncio.timeout(ANSWER_SECONDS):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return question.answer(await self.reader.readexactly(size))

    def close(self) -> None:
        self.writer.close()


@dataclass
class Ledger:
    """What all members together know, and hold the broker to."""

    partitions: int
    owners: dict[tuple[int, int], str] = field(default_factory=dict)
    """(generation or epoch, partition): of the classic protocol."""
    holders: dict[int, str] = field(default_factory=dict)
    """partition: who works on it now, of the new protocol, where hand-overs are one by one."""
    committed: dict[int, int] = field(default_factory=dict)
    """partition: the last offset whose commit was acknowledged."""
    told: Told = field(default_factory=Told)

    def given(self, generation: int, member: str, partitions: list[int]) -> None:
        self.told.assignments += len(partitions)
        for number in partitions:
            other = self.owners.setdefault((generation, number), member)
            assert other == member, f"{number} has {other} and {member} in generation {generation}"

    def take(self, member: str, number: int) -> None:
        other = self.holders.setdefault(number, member)
        assert other == member, f"{number} was given to {member} while {other} had it"
        self.told.assignments += 1

    def give(self, member: str, numbers) -> None:
        for number in numbers:
            if self.holders.get(number) == member:
                del self.holders[number]

    def check(self, number: int, found: int) -> None:
        known = self.committed.get(number, -1)
        assert found >= known, f"{number}: {found} is told where {known} was committed"


class Churn:
    def __init__(self, address: str, group: str, topic: str, partitions: int, protocol: str):
        self.address, self.group, self.topic = address, group, topic
        self.partitions, self.protocol = partitions, protocol
        self.ledger = Ledger(partitions)
        self.chance = random.Random(f"{group}-{partitions}")

    def run(self, members: int, seconds: float) -> Told:
        """Raises what any member finds wrong."""
        asyncio.run(self._run(members, seconds))
        return self.ledger.told

    async def _run(self, members: int, seconds: float) -> None:
        connection = await Connection.to(self.address)
        while await connection.ask(groups.find(self.group)) != NONE:
            await asyncio.sleep(0.1)
        until = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as tasks:
            for number in range(members):
                tasks.create_task(self._lives(until, f"m{number}"))
        await self._look_at_the_end(connection)
        connection.close()

    async def _look_at_the_end(self, connection: Connection) -> None:
        numbers = range(self.partitions)
        _, found = await connection.ask(groups.offsets(self.group, self.topic, numbers))
        for number, (offset, _) in found.items():
            assert offset == self.ledger.committed.get(number, -1), f"{number}: {offset}"

    async def _lives(self, until: float, name: str) -> None:
        """One life after the other."""
        now = asyncio.get_running_loop().time
        await asyncio.sleep(self.chance.uniform(0, 1))
        while now() < until:
            connection = await Connection.to(self.address)
            end = min(until, now() + self.chance.uniform(1, 15))
            try:
                live = self._classic if self.protocol == "classic" else self._consumer
                await live(connection, end, name)
            except Gone:
                pass
            finally:
                connection.close()

    # --- The classic protocol ---

    async def _classic(self, connection: Connection, end: float, name: str) -> None:
        now = asyncio.get_running_loop().time
        member = await self._known(connection)
        while True:
            joined = await self._joined(connection, member)
            if joined is None:
                raise Gone
            generation = joined.generation
            plan = self._plan(joined) if joined.leads else []
            error, bytes_ = await connection.ask(
                groups.sync(self.group, generation, member, plan)
            )
            if error == groups.REBALANCE_IN_PROGRESS:
                continue
            if error != NONE:
                raise Gone
            mine = groups.read_assignment(bytes_)
            self.ledger.given(generation, member, mine)
            await self._see_positions(connection, mine)
            while (error := await self._beat(connection, generation, member)) == NONE:
                if now() >= end:
                    return await self._go(connection, member)
                await self._commit(connection, mine, generation, member)
                await asyncio.sleep(self.chance.uniform(0.1, 0.5))
            if error != groups.REBALANCE_IN_PROGRESS:
                raise Gone
            await self._commit(connection, mine, generation, member)  # as clients do before they give
            if now() >= end:
                return await self._go(connection, member)

    async def _known(self, connection: Connection) -> str:
        options = {"session_ms": SESSION_MS, "rebalance_ms": REBALANCE_MS, "topic": self.topic}
        first = await connection.ask(groups.join(self.group, **options))
        if first.error != groups.MEMBER_ID_REQUIRED:
            raise Gone
        return first.member

    async def _joined(self, connection: Connection, member: str) -> Joined | None:
        options = {"session_ms": SESSION_MS, "rebalance_ms": REBALANCE_MS, "topic": self.topic}
        joined = await connection.ask(groups.join(self.group, member, **options))
        while joined.error == groups.REBALANCE_IN_PROGRESS:
            joined = await connection.ask(groups.join(self.group, member, **options))
        if joined.error != NONE:
            return None
        self.ledger.told.joins += 1
        return joined

    def _plan(self, joined: Joined) -> list[tuple[str, bytes]]:
        shares: dict[str, list[int]] = {member: [] for member, _, _ in joined.members}
        names = sorted(shares)
        for number in range(self.partitions):
            shares[names[number % len(names)]].append(number)
        return [(name, groups.assignment(self.topic, own)) for name, own in shares.items()]

    async def _beat(self, connection: Connection, generation: int, member: str) -> int:
        return await connection.ask(groups.heartbeat(self.group, generation, member))

    async def _go(self, connection: Connection, member: str) -> None:
        """Leaves, or is just gone."""
        if self.chance.random() < 0.5:
            self.ledger.told.deaths += 1
            return
        self.ledger.told.leaves += 1
        await connection.ask(groups.leave(self.group, (member, None)))

    # --- The protocol of KIP-848 ---

    async def _consumer(self, connection: Connection, end: float, name: str) -> None:
        now = asyncio.get_running_loop().time
        member = f"{name}-{self.chance.getrandbits(64):x}"
        mine: set[int] = set()
        topic_id = b""
        first = {"topics": [self.topic], "owned": {}, "rebalance_ms": REBALANCE_MS}
        beat = await connection.ask(groups.consumer_heartbeat(self.group, member, 0, **first))
        if beat.error != NONE:
            raise Gone
        self.ledger.told.joins += 1
        try:
            while now() < end:
                if beat.assignment is not None:
                    topic_id = next(iter(beat.assignment), topic_id)
                    await self._reconcile(connection, mine, beat, member)
                owned = {topic_id: sorted(mine)} if topic_id else {}
                beat = await connection.ask(
                    groups.consumer_heartbeat(self.group, member, beat.epoch, owned=owned)
                )
                if beat.error != NONE:
                    raise Gone
                await self._commit(connection, sorted(mine), beat.epoch, member)
                await asyncio.sleep(self.chance.uniform(0.1, 0.5))
            if self.chance.random() < 0.5:
                self.ledger.told.leaves += 1
                self.ledger.give(member, mine)
                await connection.ask(groups.consumer_heartbeat(self.group, member, -1))
            else:
                self.ledger.told.deaths += 1
        finally:
            self.ledger.give(member, mine)  # who is put out works no more

    async def _reconcile(
        self, connection: Connection, mine: set[int], beat: Beat, member: str
    ) -> None:
        wanted = {number for numbers in beat.assignment.values() for number in numbers}
        self.ledger.give(member, mine - wanted)
        new = wanted - mine
        for number in new:
            self.ledger.take(member, number)
        mine -= mine - wanted
        mine |= new
        await self._see_positions(connection, sorted(new))

    # --- Offsets ---

    async def _see_positions(self, connection: Connection, numbers: list[int]) -> None:
        """What was acknowledged to anybody before we asked is there."""
        if not numbers:
            return
        known = {number: self.ledger.committed.get(number, -1) for number in numbers}
        error, found = await connection.ask(groups.offsets(self.group, self.topic, numbers))
        assert error == NONE, error
        for number, (offset, _) in found.items():
            assert offset >= known[number], f"{number}: {offset} where {known[number]} was committed"

    async def _commit(
        self, connection: Connection, numbers: list[int], generation: int, member: str
    ) -> None:
        """The next offset of each; only acknowledged ones count."""
        if not numbers:
            return
        offsets = {number: self.ledger.committed.get(number, -1) + 1 for number in numbers}
        place = (self.group, self.topic, offsets)
        if self.protocol == "classic":
            question = groups.commit(*place, generation=generation, member=member)
        else:
            question = groups.new_commit(*place, generation, member)
        answer = await connection.ask(question)
        for number, error in answer.items():
            if error != NONE:
                continue
            self.ledger.told.commits += 1
            self.ledger.committed[number] = max(
                self.ledger.committed.get(number, -1), offsets[number]
            )
