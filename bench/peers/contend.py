"""So many processes of holdfast that want one task, all let go at once: PROGRAM ENDPOINT TABLE COUNT. A proxy before the
server counts what they ask. The winner holds the task until all others have ended. Prints the figures as JSON."""
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "peers"))
from dynamodb_proxy import DynamoDbProxy  # noqa: E402  pylint: disable=wrong-import-position

BUSY = 75

program, endpoint, table, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
proxy = DynamoDbProxy(int(endpoint.rsplit(":", 1)[1]))
store = f"dynamodb://{table}?region=us-east-1&endpoint=http://127.0.0.1:{proxy.port}"
gate, go = os.pipe()  # they wait for its end, which comes when we close ours
held, let_go = os.pipe()  # so does the winner's command
script = f'read -r _; exec "$0" run contended --store "$1" --ttl 60s --store-patience 60s -- cat </dev/fd/{held}'
processes = [subprocess.Popen(["/bin/sh", "-c", script, program, store], stdin=gate, pass_fds=[held],
                              stderr=subprocess.DEVNULL) for _ in range(count)]
begun = time.monotonic()
os.close(go)
while sum(process.poll() is not None for process in processes) < count - 1:
    time.sleep(0.01)
took = time.monotonic() - begun
asked = dict(proxy.counts()["forwarded"])  # as it is now, without what the winner gives back
os.close(let_go)
codes = [process.wait() for process in processes]
proxy.close()
print(json.dumps({"winners": codes.count(0), "losers_told_busy": codes.count(BUSY), "reads": asked.get("GetItem", 0),
                  "writes": asked.get("UpdateItem", 0), "writes_per_loser": (asked.get("UpdateItem", 0) - 1) / (count - 1),
                  "wall_s": took}))
