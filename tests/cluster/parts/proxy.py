"""What lies between a broker and all who talk to it: bytes can come late, in fits and starts, or be
held for as long as a test likes."""

import asyncio
import random
import threading
import time

from harness.broker import free_port

CHUNK_BYTES = 1 << 16
PEER = b"millrace-broker"
"""What brokers call themselves to each other."""
RETRANSMISSION_SECONDS = 0.2


class Connection:
    def __init__(self):
        self.is_peer = False
        self.held = asyncio.Event()
        """Something that was sent towards the broker waits."""
        self.open = asyncio.Event()
        self.open.set()


class Proxy:
    """In front of one broker, which advertises it. `delay` is added to each chunk, in seconds;
    `loss` is the share of chunks that come only after a retransmission, and all behind them."""

    def __init__(self):
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.target_port = free_port()
        """Where the broker is to listen."""
        self.delay = 0.0
        self.loss = 0.0
        self.holds_peers = False
        """What peers send from now on is held, on connections that are there and on new ones."""
        self._connections: list[Connection] = []
        self._old: list[Connection] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = self._ask(asyncio.start_server(self._serve, "127.0.0.1", self.port))

    def close(self) -> None:
        self._ask(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def hold_peers(self) -> None:
        self._ask(self._hold())

    def holds_something(self) -> bool:
        return any(one.held.is_set() for one in self._connections)

    def let_go(self, *, oldest_only: bool = False) -> None:
        """Of what peers sent. `oldest_only`: on connections that were there when hold_peers() was
        called; new ones stay held."""
        self._ask(self._let_go(oldest_only))

    # ---- on the loop ----

    def _ask(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _hold(self) -> None:
        self.holds_peers = True
        self._old = [one for one in self._connections if one.is_peer]
        for one in self._old:
            one.open.clear()

    async def _let_go(self, oldest_only: bool) -> None:
        self.holds_peers = oldest_only
        for one in self._old if oldest_only else self._connections:
            one.open.set()

    async def _stop(self) -> None:
        self._server.close()
        running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection()
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.close()
            return
        self._connections.append(connection)
        try:
            await asyncio.gather(
                self._carry(reader, back, connection), self._carry(there, writer, None)
            )
        finally:
            self._connections.remove(connection)
            for one in (writer, back):
                one.close()

    async def _carry(self, reader, writer, connection: Connection | None) -> None:
        """`connection` is given of what goes towards the broker."""
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sending = asyncio.create_task(self._send(late, writer, connection))
        try:
            while data := await reader.read(CHUNK_BYTES):
                if connection is not None and not connection.is_peer and PEER in data:
                    connection.is_peer = True
                    if self.holds_peers:
                        connection.open.clear()
                after = self.delay
                if random.random() < self.loss:
                    after += RETRANSMISSION_SECONDS
                late.put_nowait((time.monotonic() + after, data))
        except OSError:
            pass
        late.put_nowait((0.0, b""))
        await sending

    async def _send(self, late, writer, connection: Connection | None) -> None:
        try:
            while True:
                due, data = await late.get()
                if (pause := due - time.monotonic()) > 0:
                    await asyncio.sleep(pause)
                if connection is not None and not connection.open.is_set():
                    if data:
                        connection.held.set()
                    await connection.open.wait()
                    connection.held.clear()
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            pass


class Proxies:
    """One for each of so many brokers, from 1: `own` is what a Cluster is to be given."""

    def __init__(self, brokers: int):
        self.of = {id: Proxy() for id in range(1, brokers + 1)}
        self.own: dict[int, dict[str, object]] = {
            id: {
                "transport.kafka.listen": f"127.0.0.1:{proxy.target_port}",
                "transport.kafka.advertise": proxy.address,
            }
            for id, proxy in self.of.items()
        }

    def close(self) -> None:
        for proxy in self.of.values():
            proxy.close()
