"""Every change of every row of a table, from its stream, and whether each change of owner was allowed."""
import time
from collections import Counter
from typing import Callable, NamedTuple, Optional

import boto3
from boto3.dynamodb.types import TypeDeserializer
from botocore.config import Config

from plain_worker import Names


class Change(NamedTuple):
    """A row before and after one write; nothing where there was none."""
    before: "Optional[dict]"
    after: "Optional[dict]"


def changes_of(endpoint: str, table) -> "list[Change]":
    """From the beginning until about now, those of each row in their order. The table has a stream with both images."""
    client = boto3.client("dynamodbstreams", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test",
                          aws_secret_access_key="test", config=Config(proxies={}))
    table.reload()
    read = TypeDeserializer().deserialize

    def image(record: dict, name: str) -> "Optional[dict]":
        found = record.get(name)
        return {key: read(value) for key, value in found.items()} if found else None

    begun = time.time()
    changes = []
    for shard in _shards(client, table.latest_stream_arn):
        iterator = client.get_shard_iterator(StreamArn=table.latest_stream_arn, ShardId=shard,
                                             ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        empty_in_a_row = 0
        # One that is open never ends, and who writes meanwhile may be as fast as we read.
        while iterator is not None and empty_in_a_row < 5 and time.time() < begun + 300:
            answer = client.get_records(ShardIterator=iterator, Limit=1000)
            iterator = answer.get("NextShardIterator")
            records = [record["dynamodb"] for record in answer["Records"]]
            empty_in_a_row = 0 if records else empty_in_a_row + 1
            changes += [Change(image(record, "OldImage"), image(record, "NewImage")) for record in records]
            if any(record["ApproximateCreationDateTime"].timestamp() > begun for record in records):
                break
            if not records:
                time.sleep(0.05)
    return changes


def _shards(client, arn: str) -> "list[str]":
    """Parents before their children."""
    shards, start = [], {}
    while True:
        told = client.describe_stream(StreamArn=arn, **start)["StreamDescription"]
        shards += told["Shards"]
        if "LastEvaluatedShardId" not in told:
            break
        start = {"ExclusiveStartShardId": told["LastEvaluatedShardId"]}
    parents = {shard["ShardId"]: shard.get("ParentShardId") for shard in shards}
    ordered: "list[str]" = []

    def add(shard: "Optional[str]") -> None:
        if shard in parents and shard not in ordered:
            add(parents[shard])
            ordered.append(shard)
    for shard in sorted(parents):
        add(shard)
    return ordered


def judge_changes(changes: "list[Change]", names: Names, lease_of: Callable[[str], float],
                  has_epochs: Callable[[str], bool]) -> "tuple[Counter, list[str]]":
    """What was seen, and what must not have been. `lease_of`: how long that owner's leases are, in seconds."""
    seen: Counter = Counter()
    wrong: "list[str]" = []
    last: "dict[str, dict]" = {}
    givers: "dict[str, str]" = {}  # who removed itself
    for change in changes:
        before, after = change.before or {}, change.after or {}
        key = str((after or before)[names.key])
        if key in last and last[key] != before:
            wrong.append(f"{key}: a change begins with another row than the one before it left")
        last[key] = after
        epoch_before, epoch = int(before.get("lease_epoch") or 0), int(after.get("lease_epoch") or 0)
        if epoch < epoch_before:
            wrong.append(f"{key}: the epoch went from {epoch_before} to {epoch}")
        owner_before, owner = before.get(names.owner) or "", after.get(names.owner) or ""
        seen["changes"] += 1
        if owner_before and not owner:
            givers[key] = owner_before
        if owner in ("", owner_before):
            continue
        expiry_before, expiry = before.get(names.expires) or 0, after.get(names.expires) or 0
        # When it was asked for, by what its owner wrote; in whole units, which may have been rounded either way.
        asked_at = float(expiry) - lease_of(owner) * names.per_second
        if owner_before and asked_at + 1 < float(expiry_before):
            wrong.append(f"{key}: {owner} took it from {owner_before}, whose lease was to end "
                         f"{float(expiry_before) - asked_at:.0f} units later")
        if has_epochs(owner) and epoch != epoch_before + 1:
            wrong.append(f"{key}: {owner} took it, and the epoch went from {epoch_before} to {epoch}")
        giver = owner_before or givers.get(key, "")
        seen[f"{_side(giver, has_epochs)} → {_side(owner, has_epochs)}, {'ended' if expiry_before else 'given back'}"] += 1
    return seen, wrong


def _side(owner: str, has_epochs: Callable[[str], bool]) -> str:
    return "nobody" if not owner else "holdfast" if has_epochs(owner) else "plain"
