"""A TCP proxy that does harm when told to. Runs in a thread of its own; every method may be called from any thread.

A lane is one listening port before the same upstream. Modes of a lane, until another is set:

  pass        bytes go through
  stall       nothing is read: TCP holds both sides up, nothing is lost
  black_hole  bytes are taken and thrown away, of old connections and new; these are cut when the mode ends
  delay       each piece waits `amount` seconds
  throttle    `amount` bytes per second and direction
  refuse      connections are cut, nobody listens

And two that happen once: `cut` resets every connection, `half_close` ends the direction towards the worker only.
"""
import asyncio
import pathlib
import sys
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
from loop_thread import LoopThread, reset  # noqa: E402  pylint: disable=wrong-import-position

MODES = ("pass", "stall", "black_hole", "delay", "throttle", "refuse")
PIECE_BYTES = 4096


class _Connection:
    def __init__(self, down: asyncio.StreamWriter) -> None:
        self.down = down
        self.up: "asyncio.StreamWriter | None" = None
        self.swallowed = False

    def cut(self) -> None:
        for writer in (self.down, self.up):
            if writer is not None:
                reset(writer)


class _Lane:
    def __init__(self) -> None:
        self.port = 0
        self.mode = "pass"
        self.amount = 0.0
        self.changed = asyncio.Event()
        self.server: "asyncio.Server | None" = None
        self.connections: set[_Connection] = set()


class FaultProxy:
    def __init__(self, upstream_port: int, lanes: int) -> None:
        self._upstream_port = upstream_port
        self.effects: Counter = Counter()
        self._loop = LoopThread("proxy")
        self._lanes = [self._loop.call(self._open()) for _ in range(lanes)]

    def port(self, lane: int) -> int:
        return self._lanes[lane].port

    def set(self, lane: int, mode: str, amount: float = 0.0) -> None:
        assert mode in MODES
        self._loop.call(self._set(self._lanes[lane], mode, amount))

    def cut(self, lane: int) -> None:
        async def run() -> None:
            self._cut_all(self._lanes[lane])
        self._loop.call(run())

    def half_close(self, lane: int) -> None:
        async def run() -> None:
            for connection in self._lanes[lane].connections:
                self.effects["connections half closed"] += 1
                if connection.down.can_write_eof() and not connection.down.is_closing():
                    connection.down.write_eof()
        self._loop.call(run())

    def close(self) -> None:
        async def run() -> None:
            for lane in self._lanes:
                lane.server and lane.server.close()
                for connection in list(lane.connections):
                    connection.cut()
            await asyncio.sleep(0.05)
        self._loop.call(run())
        self._loop.close()

    # On the loop.

    async def _open(self) -> _Lane:
        lane = _Lane()
        await self._listen(lane)
        return lane

    async def _listen(self, lane: _Lane) -> None:
        lane.server = await asyncio.start_server(lambda reader, writer: self._serve(lane, reader, writer),
                                                 "127.0.0.1", lane.port, reuse_address=True)
        lane.port = lane.server.sockets[0].getsockname()[1]

    def _cut_all(self, lane: _Lane, swallowed_only: bool = False) -> None:
        for connection in list(lane.connections):
            if swallowed_only and not connection.swallowed:
                continue
            self.effects["connections cut"] += 1
            connection.cut()

    async def _set(self, lane: _Lane, mode: str, amount: float) -> None:
        before, lane.mode, lane.amount = lane.mode, mode, amount
        if mode == "refuse" and lane.server is not None:
            lane.server.close()
            lane.server = None
            self._cut_all(lane)
        if mode == "black_hole":
            for connection in lane.connections:
                connection.swallowed = True
                self.effects["connections swallowed"] += 1
        if mode != "refuse" and lane.server is None:
            await self._listen(lane)
        if before == "black_hole" and mode != "black_hole":
            self._cut_all(lane, swallowed_only=True)
        lane.changed.set()
        lane.changed = asyncio.Event()

    async def _serve(self, lane: _Lane, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(writer)
        connection.swallowed = lane.mode == "black_hole"
        lane.connections.add(connection)
        self.effects["connections accepted"] += 1
        try:
            up_reader, connection.up = await asyncio.open_connection("127.0.0.1", self._upstream_port)
            pumps = [asyncio.create_task(self._pump(lane, connection, reader, connection.up)),
                     asyncio.create_task(self._pump(lane, connection, up_reader, writer))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
        except OSError:
            pass
        finally:
            lane.connections.discard(connection)
            for one in (writer, connection.up):
                if one is not None:
                    one.close()

    async def _pump(self, lane: _Lane, connection: _Connection, reader: asyncio.StreamReader,
                    writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(PIECE_BYTES):
                while lane.mode == "stall":
                    self.effects["pieces stalled"] += 1
                    await lane.changed.wait()
                if connection.swallowed:
                    self.effects["bytes swallowed"] += len(piece)
                    continue
                if lane.mode == "delay":
                    self.effects["pieces delayed"] += 1
                    await asyncio.sleep(lane.amount)
                elif lane.mode == "throttle":
                    self.effects["pieces throttled"] += 1
                    await asyncio.sleep(len(piece) / lane.amount)
                if connection.swallowed:  # since it began to wait: what comes later must not overtake what is lost
                    continue
                writer.write(piece)
                await writer.drain()
        except (OSError, RuntimeError):  # RuntimeError: written after write_eof()
            pass
