"""A worker that knows nothing of Holdfast but its table: what other people's programs, written with boto3, look like.

  plain_worker.py --endpoint URL --table NAME --name ME --out FILE [options]

Its rules, each one conditional write:

  claim    where the owner is missing, null or empty, or the expiry is missing or has passed: owner = me, expiry = now + lease
           (and only where the state is the wanted one, if rows have a state)
  renew    where the owner is me: expiry = now + lease
  release  where the owner is me: expiry = 0

There is no epoch, no attempt and no margin. It believes in a lease from the answer to its claim until the expiry that it
wrote, by the machine's wall clock, or until a write says that it is no longer the owner. So among such workers there are
never two who believe in one row, provided that their clocks agree, and that no write arrives after its sender gave up
waiting for it. That second provision is not theirs to keep: a release or renewal that arrives late, when its sender has
claimed the row again under the same name, passes its condition and takes a lease away that is believed in (see
test_plain_worker.py). A process that is stopped between its look at the clock and its effect acts too late, too.

Writes a line of JSON for each change of what it believes, with `at` and `until` in seconds since 1970:
{"at": 1.5, "worker": "a", "key": "CONN#1", "event": "claim"|"renew"|"release"|"lost"|"ended", "until": 9.5, "from": "b"}
(`from`, of a claim: whose it was before; of all but claim and renew `until` is `at`), and as its last line
{"at": ..., "worker": "a", "event": "end", "claims": N, "renewals": N, "releases": N, "lost": N, "errors": N}.
SIGTERM: gives everything back, and ends.
"""
import argparse
import json
import random
import signal
import sys
import time
from typing import NamedTuple, Optional, TextIO

import boto3
from boto3.dynamodb.conditions import Key
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError


class Names(NamedTuple):
    """How the table calls things. `state` empty: rows have none, and are found by a scan."""
    key: str = "Pk"
    owner: str = "lease_owner"
    expires: str = "lease_expires_at_ms"
    per_second: int = 1000  # the unit of the expiry: 1000 for milliseconds, 1 for seconds
    state: str = "desired_state"
    wanted: str = "STARTED"

    @property
    def index(self) -> str:
        return f"{self.state}-{self.expires}-index"


def open_table(endpoint: str, table: str, patience_seconds: float = 30.0):
    """boto3's table. A call that has no answer in time is not repeated: a repeat would be judged by an old clock."""
    return boto3.resource(
        "dynamodb", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(read_timeout=patience_seconds, connect_timeout=patience_seconds, retries={"total_max_attempts": 1},
                      proxies={})).Table(table)


class PlainLeases:
    """The three writes and the look, for one name. Raises ClientError and BotoCoreError as boto3 does, but for
    conditions that fail: then the result says so."""

    def __init__(self, table, name: str, names: Names, lease_seconds: float) -> None:
        self._table = table
        self._name = name
        self._names = names
        self._lease_seconds = lease_seconds

    def now(self) -> float:
        return time.time()

    def _expiry(self) -> int:
        return int((self.now() + self._lease_seconds) * self._names.per_second)

    def _write(self, key: str, changes: dict, condition: str, values: dict) -> "tuple[bool, dict]":
        """Whether the condition held, and the row as it was."""
        sets = ", ".join(f"#{name} = :{name}" for name in changes)
        everything = {**{f":{name}": value for name, value in changes.items()}, **values}
        aliases = {"#owner": self._names.owner, "#expires": self._names.expires, "#state": self._names.state}
        text = sets + condition
        try:
            answer = self._table.update_item(
                Key={self._names.key: key}, UpdateExpression="SET " + sets, ConditionExpression=condition,
                ExpressionAttributeNames={alias: name for alias, name in aliases.items() if alias in text},
                ExpressionAttributeValues=everything, ReturnValues="ALL_OLD")
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False, {}
            raise
        return True, answer.get("Attributes", {})

    def claim(self, key: str) -> "Optional[tuple[float, str]]":
        """Until when it is mine, and whose it was; nothing where somebody else has it."""
        expiry = self._expiry()
        condition = ("attribute_exists(" + self._key_alias() + ") AND " if not self._names.state
                     else "#state = :wanted AND ")
        condition += ("(attribute_not_exists(#owner) OR attribute_type(#owner, :null) OR #owner = :nobody"
                      " OR attribute_not_exists(#expires) OR #expires < :now)")
        values = {":null": "NULL", ":nobody": "", ":now": int(self.now() * self._names.per_second)}
        if self._names.state:
            values[":wanted"] = self._names.wanted
        mine, before = self._write(key, {"owner": self._name, "expires": expiry}, condition, values)
        return (expiry / self._names.per_second, str(before.get(self._names.owner) or "")) if mine else None

    def _key_alias(self) -> str:
        return self._names.key

    def renew(self, key: str) -> Optional[float]:
        """Until when it is mine now; nothing where it is mine no more."""
        expiry = self._expiry()
        mine, _ = self._write(key, {"expires": expiry}, "#owner = :me", {":me": self._name})
        return expiry / self._names.per_second if mine else None

    def release(self, key: str) -> bool:
        return self._write(key, {"expires": 0}, "#owner = :me", {":me": self._name})[0]

    def look(self, limit: int) -> "list[str]":
        """Keys of rows that may be had. From an index, or a scan: both may be old."""
        now = int(self.now() * self._names.per_second)
        if self._names.state:
            found = self._table.query(
                IndexName=self._names.index, Limit=limit,
                KeyConditionExpression=Key(self._names.state).eq(self._names.wanted) & Key(self._names.expires).lt(now))
            return [row[self._names.key] for row in found["Items"]]
        rows = self._table.scan()["Items"]
        return [row[self._names.key] for row in rows
                if not row.get(self._names.owner) or row.get(self._names.expires, 0) < now]


class PlainWorker:
    """Holds what it can get, renews it, and now and then gives one back."""

    def __init__(self, leases: PlainLeases, name: str, out: TextIO, options: argparse.Namespace) -> None:
        self._leases = leases
        self._name = name
        self._out = out
        self._options = options
        self._random = random.Random(options.seed if options.seed is not None else name)
        self._held: dict[str, float] = {}  # key → until when
        self._counts = dict.fromkeys(("claims", "renewals", "releases", "lost", "errors"), 0)
        self.stopping = False

    def run(self) -> None:
        end = self._leases.now() + self._options.seconds
        while not self.stopping and self._leases.now() < end:
            self._turn()
            time.sleep(self._options.lease / 4 * self._random.uniform(0.5, 1.0))
        for key in list(self._held):
            self._release(key)
        self._say(event="end", **self._counts)

    def _turn(self) -> None:
        has_released = False
        for key in list(self._held):
            self._forget_what_ended()
            if key not in self._held:
                continue
            if self._random.random() < self._options.release_share:
                self._release(key)
                has_released = True
            else:
                self._renew(key)
        self._forget_what_ended()
        # What it gives back is for others: it would be the first to see it.
        if not has_released and len(self._held) < self._options.hold_max:
            self._claim_some()

    def _claim_some(self) -> None:
        keys = self._try(lambda: self._leases.look(20)) or []
        self._random.shuffle(keys)
        for key in keys:
            if len(self._held) >= self._options.hold_max:
                return
            if key in self._held or not key.startswith(self._options.key_prefix):
                continue
            got = self._try(lambda key=key: self._leases.claim(key))
            if got:
                self._counts["claims"] += 1
                self._believe(key, "claim", got[0], {"from": got[1]})

    def _renew(self, key: str) -> None:
        failed = object()
        until = self._try(lambda: self._leases.renew(key), failed)
        if until is failed:
            return  # it may have been done; what is believed stays as it was
        if until is None:
            self._counts["lost"] += 1
            self._stop(key, "lost")
        else:
            self._counts["renewals"] += 1
            self._believe(key, "renew", until, {})

    def _release(self, key: str) -> None:
        self._stop(key, "release")  # first stop, then say so
        self._counts["releases"] += 1
        self._try(lambda: self._leases.release(key))

    def _believe(self, key: str, event: str, until: float, more: dict) -> None:
        if until <= self._leases.now():
            return self._stop(key, "ended") if key in self._held else None  # the answer came too late
        self._held[key] = until
        self._say(key=key, event=event, until=until, **more)
        return None

    def _stop(self, key: str, event: str) -> None:
        del self._held[key]
        self._say(key=key, event=event, until=None)

    def _forget_what_ended(self) -> None:
        for key, until in list(self._held.items()):
            if until <= self._leases.now():
                self._stop(key, "ended")

    def _try(self, call, otherwise=None):
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            self._counts["errors"] += 1
            if self._counts["errors"] <= 5:
                print(f"{self._name}: {error}", file=sys.stderr)
            return otherwise

    def _say(self, **fields) -> None:
        at = self._leases.now()
        if "until" in fields and fields["until"] is None:
            fields["until"] = at
        self._out.write(json.dumps({"at": at, "worker": self._name, **fields}) + "\n")
        self._out.flush()


def parse(arguments: "list[str] | None" = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True, metavar="URL")
    parser.add_argument("--table", required=True)
    parser.add_argument("--name", required=True, help="under which it owns rows")
    parser.add_argument("--out", required=True, metavar="FILE", help="what it believes, as lines of JSON")
    parser.add_argument("--key", default="Pk", metavar="ATTRIBUTE")
    parser.add_argument("--owner", default="lease_owner", metavar="ATTRIBUTE")
    parser.add_argument("--expires", default="lease_expires_at_ms", metavar="ATTRIBUTE")
    parser.add_argument("--expires-unit", choices=["ms", "s"], default="ms")
    parser.add_argument("--state", default="desired_state", metavar="ATTRIBUTE", help="empty: rows have none; scans")
    parser.add_argument("--wanted", default="STARTED", metavar="STATE")
    parser.add_argument("--key-prefix", default="", help="only rows whose key begins so")
    parser.add_argument("--lease", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--hold-max", type=int, default=10, metavar="N")
    parser.add_argument("--release-share", type=float, default=0.05, metavar="0..1", help="of renewals: gives back")
    parser.add_argument("--seconds", type=float, default=3600.0, help="ends by itself")
    parser.add_argument("--seed", type=int)
    return parser.parse_args(arguments)


def main() -> int:
    options = parse()
    names = Names(options.key, options.owner, options.expires, 1000 if options.expires_unit == "ms" else 1,
                  options.state, options.wanted)
    with open(options.out, "a", encoding="utf-8") as out:
        leases = PlainLeases(open_table(options.endpoint, options.table), options.name, names, options.lease)
        worker = PlainWorker(leases, options.name, out, options)

        def stop(*_) -> None:
            worker.stopping = True
        signal.signal(signal.SIGTERM, stop)
        worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
