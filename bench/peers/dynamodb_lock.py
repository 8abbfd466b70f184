"""What a function in boto3 does to have an exclusive right, and no more: ENDPOINT TABLE NAME. One conditional put."""
import os
import sys
import time

import boto3
from botocore.config import Config

endpoint, table, name = sys.argv[1:]
now = int(time.time() * 1000)
boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1", config=Config(proxies={})).put_item(
    TableName=table, Item={"Pk": {"S": name}, "lease_owner": {"S": str(os.getpid())},
                           "lease_expires_at_ms": {"N": str(now + 10_000)}},
    ConditionExpression="attribute_not_exists(Pk) OR lease_expires_at_ms < :now",
    ExpressionAttributeValues={":now": {"N": str(now)}})
print("taken", flush=True)
