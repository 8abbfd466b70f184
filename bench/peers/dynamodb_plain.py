"""What a plain loop in boto3 consumes on DynamoDB Local: ENDPOINT CONNECTIONS SECONDS. It renews each lease and reads
each row's desired state, every 5 s. Prints the figures as JSON: capacity units per second, as the server told them."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "peers"))
from capacity import Measured  # noqa: E402  pylint: disable=wrong-import-position

RENEW_EVERY_S = 5

endpoint, connections, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
table = Measured(endpoint)
keys = [f"CONN#s{i}" for i in range(connections)]
for key in keys:
    table.put(key, "STARTED", 300)
writes = reads = renewals = 0.0
begun = time.monotonic()
for turn in range(max(1, round(seconds / RENEW_EVERY_S))):
    time.sleep(max(0.0, begun + turn * RENEW_EVERY_S - time.monotonic()))
    for key in keys:
        reads += sum(table.get(key, False))
        expires = int(time.time() * 1000) + 4 * RENEW_EVERY_S * 1000
        writes += sum(table.update(key, "SET #expires = :expires", "#owner = :me",
                                   {":me": "worker-1.0123456789ab", ":expires": expires}))
        renewals += 1
time.sleep(max(0.0, begun + seconds - time.monotonic()))
took = time.monotonic() - begun
print(json.dumps({"write_units_per_second": writes / took, "read_units_per_second": reads / took,
                  "units_per_second": (writes + reads) / took, "renewals_per_second": renewals / took}))
