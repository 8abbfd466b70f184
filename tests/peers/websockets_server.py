"""A server on Python's `websockets` that does what the path of a connection asks for: see README.md."""
import asyncio
import json

import websockets
from websockets.frames import OP_BINARY, OP_CONT, OP_TEXT

from scenario import KNOWN, Query, arguments, tls


async def echo(socket, query):
    async for message in socket:
        await socket.send(message)


async def fragments(socket, query):
    opcode = OP_BINARY if query.number("binary") else OP_TEXT
    for piece, last in query.pieces():
        # send() of an iterable cannot cut a character in two; a frame can.
        await socket.write_frame(last, opcode, piece)
        opcode = OP_CONT
    await socket.wait_closed()


async def pings(socket, query):
    opcode = OP_TEXT
    pongs = []
    for piece, last in query.pieces():
        await socket.write_frame(last, opcode, piece)
        opcode = OP_CONT
        if not last:
            pongs.append(await socket.ping(f"ping {len(pongs)}"))
    for pong in pongs:  # answered by its own pong or by that of a later ping: RFC 6455, 5.5.3
        await pong
    await socket.send("all answered")
    await socket.wait_closed()


async def many(socket, query):
    for message in query.many():
        await socket.send(message)


async def large(socket, query):
    binary, payload = query.pattern()
    await socket.send(payload if binary else payload.decode())
    await socket.wait_closed()


async def headers(socket, query):
    await socket.send(json.dumps({name.lower(): value for name, value in socket.request_headers.raw_items()}))
    await socket.wait_closed()


async def close(socket, query):
    for i in range(query.number("count")):
        await socket.send(str(i))
    await socket.close(query.number("code"), query.text("reason"))


async def abrupt(socket, query):
    for i in range(query.number("count")):
        await socket.send(str(i))
    socket.transport.abort()


async def report(socket, query):
    await socket.wait_closed()
    print(f"closed {socket.close_code} {socket.close_reason}", flush=True)


SCENARIOS = {f"/{scenario.__name__}": scenario
             for scenario in (echo, fragments, pings, many, large, headers, close, abrupt, report)}


async def serve(socket):
    query = Query(socket.path)
    try:
        if query.path in SCENARIOS:
            await SCENARIOS[query.path](socket, query)
        else:
            await socket.close(4004, "no such path")
    except websockets.ConnectionClosed:
        pass


def choose(offered, known):
    return next((name for name in known if name in offered), None)


async def main():
    options = arguments()
    async with websockets.serve(serve, options.host, 0, ssl=tls(options), subprotocols=KNOWN,
                                select_subprotocol=choose, compression=None, max_size=None,
                                ping_interval=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


asyncio.run(main())
