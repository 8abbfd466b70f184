"""What Holdfast's requests cost in capacity units, measured on DynamoDB Local.

  capacity.py             prints the table of docs/capacity.md
  capacity.py --write     puts it into docs/capacity.md

The requests are those of src/core/lease_write.cpp and of the looks, as expressions; the table and its index are those of
docs/architecture.md. What a request consumed is what the server says (ReturnConsumedCapacity=INDEXES).
"""
import argparse
import os
import pathlib
import sys
import time

import boto3
from botocore.config import Config

from dynamodb_server import Shared

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "capacity.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
INDEX = "desired_state-lease_expires_at_ms-index"
ALIASES = {"#state": "desired_state", "#owner": "lease_owner", "#epoch": "lease_epoch", "#attempt": "lease_attempt",
           "#renewal": "lease_renewal", "#expires": "lease_expires_at_ms", "#released": "lease_released_at_ms",
           "#seq": "last_seq", "#beat": "beat"}


def values_of(plain: dict) -> dict:
    return {name: {"N": str(value)} if isinstance(value, int) else {"S": value} for name, value in plain.items()}


class Measured:
    """One table, and what the last request consumed: (of the table, of the index)."""

    def __init__(self, endpoint: str) -> None:
        self.client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test",
                                   aws_secret_access_key="test", config=Config(proxies={}, read_timeout=60))
        self.table = "capacity-" + os.urandom(12).hex()
        self.client.create_table(
            TableName=self.table, BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "Pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "Pk", "AttributeType": "S"},
                                  {"AttributeName": "desired_state", "AttributeType": "S"},
                                  {"AttributeName": "lease_expires_at_ms", "AttributeType": "N"}],
            GlobalSecondaryIndexes=[{"IndexName": INDEX, "Projection": {"ProjectionType": "ALL"},
                                     "KeySchema": [{"AttributeName": "desired_state", "KeyType": "HASH"},
                                                   {"AttributeName": "lease_expires_at_ms", "KeyType": "RANGE"}]}])
        self.client.get_waiter("table_exists").wait(TableName=self.table)
        self._time = int(time.time() * 1000)

    def later(self) -> int:
        """An expiry that no row has yet."""
        self._time += 5000
        return self._time

    @staticmethod
    def consumed(answer: dict) -> "tuple[float, float]":
        told = answer["ConsumedCapacity"]
        indexes = told.get("GlobalSecondaryIndexes", {})
        return (told.get("Table", {}).get("CapacityUnits", 0.0),
                sum(index["CapacityUnits"] for index in indexes.values()))

    def put(self, key: str, state: str, bytes_about: int) -> None:
        """A row as it stands between two renewals, filled up to about that size."""
        row = {"Pk": key, "desired_state": state, "lease_expires_at_ms": self.later(), "lease_owner": "worker-1.0123456789ab",
               "lease_epoch": 7, "lease_attempt": "0" * 32, "lease_renewal": 41, "last_seq": 123456,
               "ws_url": "wss://feed.example/stream/1"}
        filled = sum(len(name) + len(str(value)) for name, value in row.items())
        row["options"] = "x" * max(1, bytes_about - filled - len("options"))
        self.client.put_item(TableName=self.table, Item=values_of(row))

    def update(self, key: str, update: str, condition: str, values: dict) -> "tuple[float, float]":
        text = update + condition
        answer = self.client.update_item(
            TableName=self.table, Key={"Pk": {"S": key}}, UpdateExpression=update, ConditionExpression=condition,
            ExpressionAttributeNames={alias: name for alias, name in ALIASES.items() if alias in text},
            ExpressionAttributeValues=values_of(values), ReturnValues="ALL_NEW", ReturnConsumedCapacity="INDEXES")
        return self.consumed(answer)

    def claim(self, key: str) -> "tuple[float, float]":
        return self.update(
            key, "SET #owner = :me, #epoch = :next, #attempt = :attempt, #renewal = :zero, #expires = :expires REMOVE #released",
            "attribute_exists(Pk) AND #state = :started AND #epoch = :epoch",
            {":me": "worker-2.0123456789ab", ":next": 8, ":attempt": "1" * 32, ":zero": 0, ":expires": self.later(),
             ":started": "STARTED", ":epoch": 7})

    def renew(self, key: str, epoch: int, more: str = "", values: "dict | None" = None) -> "tuple[float, float]":
        return self.update(key, "SET #attempt = :attempt, #renewal = :renewal, #expires = :expires" + more,
                           "#epoch = :epoch", {":attempt": "2" * 32, ":renewal": 42, ":expires": self.later(),
                                               ":epoch": epoch, **(values or {})})

    def query(self, limit: int) -> "tuple[float, float]":
        return self.consumed(self.client.query(
            TableName=self.table, IndexName=INDEX, Limit=limit, ReturnConsumedCapacity="INDEXES",
            KeyConditionExpression="desired_state = :state AND lease_expires_at_ms < :before",
            ExpressionAttributeValues=values_of({":state": "DUE", ":before": self.later()})))

    def get(self, key: str, consistent: bool) -> "tuple[float, float]":
        return self.consumed(self.client.get_item(TableName=self.table, Key={"Pk": {"S": key}}, ConsistentRead=consistent,
                                                  ReturnConsumedCapacity="INDEXES"))


def measure(endpoint: str) -> "list[tuple[str, str, tuple[float, float]]]":
    """(request, row, (units of the table, units of the index)): write units, or read units where the request reads."""
    table = Measured(endpoint)
    lines = []
    for size in (500, 1500):
        row = f"{size} bytes"
        key = f"CONN#{size}"
        table.put(key, "STARTED", size)
        lines.append(("claim", row, table.claim(key)))
        lines.append(("renewal", row, table.renew(key, 8)))
        lines.append(("renewal that carries `last_seq`", row,
                      table.renew(key, 8, ", #seq = :seq", {":seq": 123999})))
        lines.append(("checkpoint alone (the expiry stays)", row,
                      table.update(key, "SET #seq = :seq", "#epoch = :epoch", {":seq": 124999, ":epoch": 8})))
        lines.append(("release", row, table.update(
            key, "SET #expires = :zero, #attempt = :attempt, #released = :now REMOVE #owner", "#epoch = :epoch",
            {":zero": 0, ":attempt": "3" * 32, ":now": table.later(), ":epoch": 8})))
    lines.append(("read of a row, consistent", "500 bytes", table.get("CONN#500", True)))
    lines.append(("read of a row, eventual", "500 bytes", table.get("CONN#500", False)))
    lines.append(("look that finds nothing", "none", table.query(100)))
    for count in (10, 100):
        for i in range(count):
            table.put(f"CONN#due-{count}-{i}", "DUE", 500)
        lines.append((f"look that finds {count}", "500 bytes each", table.query(count)))
    return lines


def as_table(lines: "list[tuple[str, str, tuple[float, float]]]") -> str:
    text = "| request | row | units of the table | units of the index | in all |\n| --- | --- | --- | --- | --- |\n"
    for request, row, (of_table, of_index) in lines:
        text += f"| {request} | {row} | {of_table:g} | {of_index:g} | **{of_table + of_index:g}** |\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/capacity.md")
    write = parser.parse_args().write
    server = Shared("local")
    if not server.endpoint:
        print(f"capacity.py: {server.failure}", file=sys.stderr)
        return 1
    table = as_table(measure(server.endpoint))
    if not write:
        print(table, end="")
        return 0
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    DOCUMENT.write_text(before + BEGIN + table + END + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
