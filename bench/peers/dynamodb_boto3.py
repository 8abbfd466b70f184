"""Conditional updates with boto3, one after the other on one connection: ENDPOINT COUNT REQUEST, the last being the
call's parameters as JSON. A quarter as many pass before the clock starts. Prints the figures as JSON."""
import json
import sys
import time

import boto3
import botocore
from botocore.config import Config

endpoint, count, request = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test",
                      aws_secret_access_key="test-secret", config=Config(proxies={}, retries={"total_max_attempts": 1}))
request.pop("ReturnValuesOnConditionCheckFailure", None)  # Debian 12's boto3 does not know it
skip = count // 4
for i in range(count + skip):
    if i == skip:
        cpu, wall = time.process_time(), time.perf_counter()
    request["Key"]["Pk"]["S"] = f"CONN#stream-{i % 1000}"
    answer = client.update_item(**request)
    assert "Attributes" in answer and answer["ConsumedCapacity"]["CapacityUnits"] == 3
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
print(json.dumps({"count": count, "cpu_s": cpu, "wall_s": wall, "per_core_second": count / cpu,
                  "per_second": count / wall, "cpu_ns_each": cpu / count * 1e9}))
