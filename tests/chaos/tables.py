"""The table that a round's workers share, and the harm that can be done to it."""
import os
import pathlib
import random
import sqlite3
import sys
from typing import Optional, Protocol

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_CONFIG_FILE": "/dev/null",
               "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true"}


class Table(Protocol):
    environment: dict      # of all processes of the program; commands find the table by it
    holds_up_commands: bool  # harm that is being done would keep a command waiting

    def url(self, worker: str) -> str:
        """What that worker is given as its --store."""

    def plain_endpoint(self) -> str:
        """Where plain workers reach it; empty: nobody shares this kind of table with them."""

    def begin(self, kind: str, target: str, amount: float) -> bool:
        """Does harm, to all workers or to one; false if it cannot be done now."""

    def end(self) -> None:
        """Ends what harm there is."""

    def close(self) -> None: ...


class SqliteTable:
    environment: dict = {}

    def __init__(self, folder: str) -> None:
        self._file = os.path.join(folder, "holdfast.db")
        self._lock: Optional[sqlite3.Connection] = None

    @property
    def holds_up_commands(self) -> bool:
        return self._lock is not None

    def url(self, worker: str) -> str:  # pylint: disable=unused-argument
        return "sqlite:holdfast.db"

    def plain_endpoint(self) -> str:
        return ""

    def begin(self, kind: str, target: str, amount: float) -> bool:  # pylint: disable=unused-argument
        """lock_short, lock_long: somebody holds the write lock."""
        if self._lock is not None:
            return False
        self._lock = sqlite3.connect(self._file, timeout=2, isolation_level=None)
        try:
            self._lock.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:  # busy
            self.end()
            return False
        return True

    def end(self) -> None:
        if self._lock is not None:
            if self._lock.in_transaction:
                self._lock.execute("ROLLBACK")
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        self.end()


PLAIN = "plain"  # the way of all plain workers

# What befalls requests, each with the part of them (of the share that the schedule draws) that it meets.
STORE_FAULTS = {
    "store_throttle": [{"fault": "throttle"}],
    "store_errors": [{"fault": "status_500", "part": 0.3}, {"fault": "status_500_after", "part": 0.5}, {"fault": "status_503"}],
    "store_cut": [{"fault": "cut_before_request", "part": 0.3}, {"fault": "cut_after_request", "part": 0.5},
                  {"fault": "cut_after_reply"}],
    "store_spoiled": [{"fault": "garbage", "part": 0.25}, {"fault": "half_body", "part": 0.33}, {"fault": "wrong_crc", "part": 0.5},
                      {"fault": "no_http"}],
    "store_delay": [{"fault": "delay_request", "part": 0.5}, {"fault": "delay_reply"}],
    # They arrive when the harm ends: long after their senders have given them up, and perhaps have died.
    "store_late": [{"fault": "hold_request", "part": 0.7}, {"fault": "hold_reply"}],
    "store_silence": [{"fault": "drop_request", "part": 0.5}, {"fault": "drop_reply"}],
}
# A plain worker promises something only where no write of its own arrives late, and boto3 raises what it likes at
# answers that are none.
TO_PLAIN = ("store_throttle", "store_errors", "store_cut", "store_outage")


def rules_of(kind: str, share: float, seconds: float) -> "list[dict]":
    """For the proxy: `share` of all requests are harmed, by one fault of the kind or another."""
    rules, left = [], share
    for index, fault in enumerate(STORE_FAULTS[kind]):
        mine = left * fault.get("part", 1.0)
        rules.append({"fault": fault["fault"], "operation": "*", "times": 0, "seconds": seconds,
                      # Rules are asked in turn: a later one sees only what those before it have let go by.
                      "share": min(1.0, mine / (1 - (share - left)) if share - left < 1 else 1.0)})
        left -= mine
        if index == len(STORE_FAULTS[kind]) - 1:
            break
    return rules


class DynamoTable:
    """On DynamoDB Local. Each worker reaches it by a proxy of its own, commands and judges directly."""

    holds_up_commands = False

    def __init__(self, server, workers: "tuple[str, ...]", seed: str) -> None:
        from dynamodb_proxy import DynamoDbProxy  # pylint: disable=import-outside-toplevel
        self._server = server
        self.name = f"chaos-{os.urandom(8).hex()}"
        draw = random.Random(seed)
        self._ways = {name: DynamoDbProxy(server.port, draw.randrange(1 << 30)) for name in (*workers, PLAIN)}
        self._harmed: "list[str]" = []
        self._kind = ""
        self.environment = {**ENVIRONMENT, "HOLDFAST_STORE": self._url(server.endpoint)}

    def _url(self, endpoint: str) -> str:
        return f"dynamodb://{self.name}?region=us-east-1&endpoint={endpoint}"

    def url(self, worker: str) -> str:
        return self._url(f"http://127.0.0.1:{self._ways[worker].port}")

    def plain_endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ways[PLAIN].port}"

    def begin(self, kind: str, target: str, amount: float) -> bool:
        if self._harmed:
            return False
        self._kind = kind
        self._harmed = [name for name in self._ways if target in ("", name) and (name != PLAIN or kind in TO_PLAIN)]
        for name in self._harmed:
            if kind == "store_outage":
                self._ways[name].refuse(True)
            else:
                share, seconds = (0.4, amount) if kind == "store_delay" else (amount, 0.0)
                self._ways[name].plan(*rules_of(kind, share, seconds))
        return True

    def end(self) -> None:
        for name in self._harmed:
            self._ways[name].clear()
            self._ways[name].release()
            self._ways[name].refuse(False)
            if self._kind == "store_silence":
                self._ways[name].cut()  # what waits on them waits for nothing
        self._harmed = []

    def effects(self) -> "dict[str, int]":
        """What the proxies did, by fault."""
        counts: "dict[str, int]" = {}
        for way in self._ways.values():
            told = way.counts()
            for fault, count in told["faults"].items():
                counts[fault] = counts.get(fault, 0) + count
            counts["requests seen"] = counts.get("requests seen", 0) + sum(told["seen"].values())
        return counts

    def close(self) -> None:
        self.end()
        for way in self._ways.values():
            way.close()
