"""What plain workers (boto3, no epoch) promise to each other on DynamoDB Local, and what they do not."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from beliefs import Belief, beliefs_in, beliefs_of, both_at_once, takeovers
from dynamodb_proxy import DynamoDbProxy
from dynamodb_server import Shared
from plain_worker import Names, PlainLeases, open_table

PROGRAM = pathlib.Path(__file__).resolve().parent / "plain_worker.py"
FLEET = Names()
COORDINATORS = Names("tarefa_id", "instancia_id", "expiracao", 1, "")
LIMIT_SECONDS = 120


def setUpModule() -> None:  # pylint: disable=invalid-name
    global SERVER  # pylint: disable=global-statement
    SERVER = Shared("local")
    if not SERVER.endpoint:
        raise RuntimeError(SERVER.failure)


def new_table(names: Names):
    name = "plain-" + os.urandom(12).hex()
    table = open_table(SERVER.endpoint, name, LIMIT_SECONDS)
    attributes = [(names.key, "S"), *([(names.state, "S"), (names.expires, "N")] if names.state else [])]
    more = {"GlobalSecondaryIndexes": [{
        "IndexName": names.index, "Projection": {"ProjectionType": "ALL"},
        "KeySchema": [{"AttributeName": names.state, "KeyType": "HASH"},
                      {"AttributeName": names.expires, "KeyType": "RANGE"}]}]} if names.state else {}
    table.meta.client.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": kind} for one, kind in attributes],
        KeySchema=[{"AttributeName": names.key, "KeyType": "HASH"}], **more)
    table.wait_until_exists()
    return table


def put(table, names: Names, key: str, **more) -> None:
    state = {names.state: names.wanted} if names.state else {}
    table.put_item(Item={names.key: key, names.expires: 0, **state, **more})


class ItsRules(unittest.TestCase):
    """For the fleet's table, and for CoordenadoresEfemeros with its seconds."""

    def each(self):
        for names in (FLEET, COORDINATORS):
            with self.subTest(names.key):
                table = new_table(names)
                yield (table, names, PlainLeases(table, "a", names, 30), PlainLeases(table, "b", names, 30))

    def test_a_row_without_an_owner_or_with_an_expiry_that_passed_is_taken_once(self) -> None:
        for table, names, first, second in self.each():
            now = int(time.time() * names.per_second)
            put(table, names, "free")
            put(table, names, "empty", **{names.owner: "", names.expires: now * 2})
            put(table, names, "null", **{names.owner: None, names.expires: now * 2})
            put(table, names, "ended", **{names.owner: "c", names.expires: now - 1})
            for key, before in (("free", ""), ("empty", ""), ("null", ""), ("ended", "c")):
                got = first.claim(key)
                self.assertIsNotNone(got, key)
                self.assertEqual(got[1], before)
                self.assertGreater(got[0], time.time() + 20)
                self.assertLess(got[0], time.time() + 40)
                self.assertIsNone(second.claim(key), key)

    def test_a_row_that_is_held_or_stopped_or_missing_is_not_taken(self) -> None:
        for table, names, first, _ in self.each():
            put(table, names, "held", **{names.owner: "c", names.expires: int((time.time() + 60) * names.per_second)})
            self.assertIsNone(first.claim("held"))
            self.assertIsNone(first.claim("missing"))
            self.assertNotIn("Item", table.get_item(Key={names.key: "missing"}))
            if names.state:
                put(table, names, "stopped", **{names.state: "STOPPED"})
                self.assertIsNone(first.claim("stopped"))

    def test_only_the_owner_renews_and_releases_and_a_released_row_is_free(self) -> None:
        for table, names, first, second in self.each():
            put(table, names, "row")
            first.claim("row")
            self.assertIsNone(second.renew("row"))
            self.assertFalse(second.release("row"))
            self.assertIsNotNone(first.renew("row"))
            self.assertNotIn("row", second.look(10))
            self.assertTrue(first.release("row"))
            self.assertEqual(table.get_item(Key={names.key: "row"})["Item"][names.expires], 0)
            self.assertIn("row", second.look(10))
            self.assertEqual(second.claim("row")[1], "a")
            self.assertIsNone(first.renew("row"))


class Several(unittest.TestCase):
    """Processes that contend for rows, one of them killed and one stopped in between."""

    SECONDS = 12
    WORKERS = ("a", "b", "c", "d")

    def contend(self, names: Names, lease: float) -> None:
        table = new_table(names)
        for i in range(8):
            put(table, names, f"CONN#{i}")
        with tempfile.TemporaryDirectory() as folder:
            files = {name: pathlib.Path(folder) / f"{name}.ndjson" for name in (*self.WORKERS, "late")}

            def start(name: str, seconds: float) -> subprocess.Popen:
                return subprocess.Popen(
                    [sys.executable, PROGRAM, "--endpoint", SERVER.endpoint, "--table", table.name, "--name", name,
                     "--out", files[name], "--key", names.key, "--owner", names.owner, "--expires", names.expires,
                     "--expires-unit", "ms" if names.per_second == 1000 else "s", "--state", names.state,
                     "--lease", str(lease), "--hold-max", "3", "--release-share", "0.2", "--seconds", str(seconds)])
            processes = {name: start(name, self.SECONDS) for name in self.WORKERS}
            # Of the others it is enough that they run: on a busy machine one may be too late for a row of its own.
            self.wait_for(lambda: all(files[name].exists() for name in self.WORKERS), "all run")
            self.wait_for(lambda: len(files["a"].read_text().splitlines()) > 3, "the first holds something")
            processes["a"].kill()
            late = start("late", self.SECONDS)
            for process in (*processes.values(), late):
                process.wait(LIMIT_SECONDS)
            for name in (*self.WORKERS[1:], "late"):
                last = json.loads(files[name].read_text().splitlines()[-1])
                self.assertEqual((last["event"], last["errors"]), ("end", 0), name)
            beliefs = beliefs_of(files.values())
        self.assertEqual(both_at_once(beliefs), [])
        taken = takeovers(beliefs)
        self.assertTrue(any(whose == "a" for _, whose in taken), f"what the killed one held is taken: {taken}")
        self.assertGreaterEqual(len(taken), 4, f"they take over from each other: {taken}")
        self.assertEqual({belief.key for belief in beliefs}, {f"CONN#{i}" for i in range(8)})

    def wait_for(self, condition, what: str) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def test_never_two_of_them_believe_in_one_row_of_the_fleets_table(self) -> None:
        self.contend(FLEET, 1.0)

    def test_never_two_of_them_believe_in_one_row_of_a_table_of_coordinators_in_seconds(self) -> None:
        self.contend(COORDINATORS, 2.0)


class WhatTheyDoNotPromise(unittest.TestCase):
    """Each of these is what the epoch, the attempt and the margin of Holdfast are for."""

    def setUp(self) -> None:
        self.table = new_table(FLEET)
        put(self.table, FLEET, "row")
        self.proxy = DynamoDbProxy(SERVER.port)
        self.addCleanup(self.proxy.close)
        behind = open_table(f"http://127.0.0.1:{self.proxy.port}", self.table.name, 0.5)
        self.first = PlainLeases(behind, "a", FLEET, 60)
        self.second = PlainLeases(self.table, "b", FLEET, 60)

    def late(self, write) -> None:
        """The write is under way, and its sender has given up waiting for it."""
        self.proxy.plan({"fault": "hold_request", "operation": "UpdateItem"})
        thread = threading.Thread(target=lambda: self.assertRaises(Exception, write))
        thread.start()
        thread.join(LIMIT_SECONDS)
        self.assertEqual(self.proxy.counts()["held"], 1)

    def arrive(self) -> None:
        done = self.proxy.counts()["forwarded"]["UpdateItem"]
        self.proxy.release()
        end = time.monotonic() + LIMIT_SECONDS
        while self.proxy.counts()["forwarded"]["UpdateItem"] == done or self.row()[FLEET.expires] != self.arrived:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def row(self) -> dict:
        return self.table.get_item(Key={"Pk": "row"}, ConsistentRead=True)["Item"]

    def test_a_release_that_arrives_late_ends_a_newer_lease_of_the_same_worker(self) -> None:
        self.assertIsNotNone(self.first.claim("row"))
        self.late(lambda: self.first.release("row"))
        # The lease ends; the worker takes the row again, and believes in it for a minute.
        self.table.update_item(Key={"Pk": "row"}, UpdateExpression="SET lease_expires_at_ms = :past",
                               ExpressionAttributeValues={":past": 1})
        until, _ = self.first.claim("row")
        self.arrived = 0
        self.arrive()
        self.assertIsNotNone(self.second.claim("row"), "the other one gets it")
        self.assertLess(time.time(), until, "while the first believes in it")

    def test_a_renewal_that_arrives_late_shortens_a_newer_lease_of_the_same_worker(self) -> None:
        with mock.patch.object(self.first, "now", lambda: time.time() - 58):
            self.assertIsNotNone(self.first.claim("row"))
            self.late(lambda: self.first.renew("row"))
        self.table.update_item(Key={"Pk": "row"}, UpdateExpression="SET lease_expires_at_ms = :past",
                               ExpressionAttributeValues={":past": 1})
        until, _ = self.first.claim("row")
        self.proxy.release()
        end = time.monotonic() + LIMIT_SECONDS
        while not self.second.claim("row"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertLess(time.time(), until, "the other one got it while the first believes in it")

    def test_a_clock_that_is_ahead_takes_what_another_believes_in(self) -> None:
        until, _ = self.first.claim("row")
        with mock.patch.object(self.second, "now", lambda: time.time() + 61):
            self.assertIsNotNone(self.second.claim("row"))
        self.assertLess(time.time(), until)


class ItsJudge(unittest.TestCase):
    """Who judges is judged first."""

    @staticmethod
    def said(worker: str, at: float, event: str, until: float, key: str = "k", **more) -> str:
        return json.dumps({"at": at, "worker": worker, "key": key, "event": event, "until": until, **more}) + "\n"

    def claim(self, worker: str, at: float, until: float, key: str = "k") -> str:
        return self.said(worker, at, "claim", until, key, **{"from": ""})

    def test_a_belief_lasts_from_the_claim_to_the_last_expiry_or_to_what_ended_it(self) -> None:
        self.assertEqual(beliefs_in([self.claim("a", 1, 5), self.said("a", 3, "renew", 7)]),
                         [Belief("k", "a", 1, 7, "")])
        self.assertEqual(beliefs_in([self.claim("a", 1, 5), self.said("a", 4, "lost", 4)]), [Belief("k", "a", 1, 4, "")])
        self.assertEqual(beliefs_in([self.claim("a", 1, 5), self.said("a", 6, "ended", 6)]), [Belief("k", "a", 1, 5, "")])
        self.assertEqual(beliefs_in([self.claim("a", 1, 5), '{"at": 3, "wor']), [Belief("k", "a", 1, 5, "")])

    def test_two_at_once_are_found_and_two_in_turn_are_not(self) -> None:
        first, second = Belief("k", "a", 1, 5, ""), Belief("k", "b", 4.9, 8, "a")
        self.assertEqual(both_at_once([second, first]), [(first, second)])
        self.assertEqual(both_at_once([first, second._replace(since=5)]), [])
        self.assertEqual(both_at_once([first, second._replace(key="l")]), [])
        self.assertEqual(both_at_once([first, second._replace(worker="a")]), [])
        inside = [Belief("k", "a", 1, 9, ""), Belief("k", "a", 2, 3, ""), Belief("k", "b", 8, 10, "")]
        self.assertEqual(both_at_once(inside), [(inside[0], inside[2])])

    def test_a_takeover_is_a_claim_of_what_was_anothers(self) -> None:
        self.assertEqual(takeovers([Belief("k", "b", 1, 2, "a"), Belief("k", "b", 3, 4, "b"), Belief("l", "c", 3, 4, "")]),
                         {("b", "a")})


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # boto3 keeps its connections for later
