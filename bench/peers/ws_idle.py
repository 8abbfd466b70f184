"""Memory per idle connection of Python's `websockets`: how many connections, and URLs (used in turn)."""
import asyncio
import gc
import json
import os
import ssl
import sys

import websockets

BATCH = 100


def resident():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def main():
    count = int(sys.argv[1])
    urls = sys.argv[2:]
    context = None
    if urls[0].startswith("wss:"):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    sockets = []

    async def grow(to):
        while len(sockets) < to:
            wanted = min(BATCH, to - len(sockets))
            sockets.extend(await asyncio.gather(*(
                websockets.connect(urls[(len(sockets) + i) % len(urls)], ssl=context, compression=None,
                                   ping_interval=None) for i in range(wanted))))

    await grow(BATCH)  # what is there once
    before = resident()
    await grow(BATCH + count)
    after = resident()
    print(json.dumps({"count": count, "resident_bytes": after,
                      "bytes_per_connection": (after - before) / count}), flush=True)
    os._exit(0)


asyncio.run(main())
