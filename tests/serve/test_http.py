#!/usr/bin/env python3
"""`holdfast serve` as its callers see it: real processes on one SQLite file, or one table of DynamoDB Local, and Python's
own HTTP client.

  test_http.py PROGRAM [TEST…]
"""
import contextlib
import json
import os
import pathlib
import re
import select
import signal
import stat
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import server as serve
from server import Caller, OnSqlite, Server

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
from dynamodb_proxy import DynamoDbProxy  # noqa: E402  pylint: disable=wrong-import-position
from dynamodb_server import Shared  # noqa: E402  pylint: disable=wrong-import-position


class Served(OnSqlite):
    def start(self, *arguments: str, **options) -> Server:
        server = Server(self.store, *arguments, **options)
        self.addCleanup(server.kill)
        return server

    def away(self):
        return serve.away(self.store.removeprefix("sqlite:"))

    def refused(self, *arguments: str) -> str:
        """The program does not start; what it says."""
        ended = subprocess.run([serve.PROGRAM, "serve", "--store", self.store, *arguments], capture_output=True,
                               text=True, timeout=serve.PATIENCE_SECONDS, check=False)
        self.assertEqual(ended.stdout, "")
        self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
        self.code = ended.returncode
        return ended.stderr


class TheDocument(Served):
    def test_it_holds_together(self):
        document = Caller(self.start()).document
        self.assertEqual(document.document["openapi"], "3.1.0")
        names = [operation["operationId"] for operation in document.operations.values()]
        self.assertEqual(len(names), len(set(names)))
        for (method, template), operation in document.operations.items():
            said = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
            self.assertEqual(said, set(re.findall(r"\{(\w+)\}", template)), template)
            self.assertEqual("requestBody" in operation, method == "POST", template)
        for match in re.findall(r'"\$ref": "([^"]+)"', str(document.document).replace("'", '"')):
            self.assertTrue(document.resolve({"$ref": match}), match)

    def test_a_duration_says_its_bounds_and_its_form(self):
        document = Caller(self.start()).document
        ttl = document.document["components"]["schemas"]["Acquire"]["properties"]["ttl"]
        self.assertEqual((ttl["x-minimum"], ttl["x-maximum"]), ("100ms", "1h"))
        for text, fits in {"10s": True, "1.5m": True, "0": True, "1.2.3s": False, "10": False, ".s": False}.items():
            self.assertEqual(bool(re.search(ttl["pattern"], text)), fits, text)

    def test_paths_and_methods_are_those_that_the_server_has(self):
        caller = Caller(self.start())
        for template, path in caller.document.document["paths"].items():
            concrete = re.sub(r"\{\w+\}", "x", template)
            allowed = caller.ask("OPTIONS", concrete).headers["Allow"].split(", ")
            said = {method.upper() for method in path} | {"OPTIONS"} | ({"HEAD"} if "get" in path else set())
            self.assertEqual(set(allowed), said, template)
            self.assertEqual(caller.ask("DELETE", concrete).status, 405)
        self.assertEqual(caller.ask("GET", "/v1/none").status, 404)

    def test_every_operation_answers_as_it_says(self):
        caller = Caller(self.start("--journal", str(self.folder / "journal"), "--max-age", "1h", "--store-patience", "1s"))
        caller.get("/healthz")
        caller.get("/openapi.json")
        mine = caller.post("/v1/tasks/report/acquire", ttl="5s", hold_for="1m")
        self.assertEqual(mine.status, 201)
        self.assertEqual(caller.post("/v1/tasks/report/acquire")["code"], "busy")
        guard = mine.headers["Location"]
        caller.get(guard)
        caller.post(f"{guard}/extend", hold_for="2m")
        caller.post(f"{guard}/release")
        self.assertEqual(caller.get(guard)["code"], "released")
        self.assertEqual(caller.get("/v1/guards/none").status, 404)
        turn = caller.post("/v1/once/k", input={"a": 1})
        self.assertEqual(caller.post("/v1/once/k/finish", guard=turn["guard"], content="done").status, 200)
        self.assertEqual(caller.post("/v1/once/k", input={"a": 1})["result"]["content"], "done")
        self.assertEqual(caller.post("/v1/once/k", input={"a": 2}).status, 422)
        self.assertEqual(caller.get("/v1/decide/d").status, 404)
        for value in ({"any": [1, 2.5, None]}, "another"):
            self.assertEqual(caller.post("/v1/decide/d", value=value)["value"], {"any": [1, 2.5, None]})
        for ticket, was_ours in (("one", True), ("one", True), ("two", False)):
            told = caller.post("/v1/decide/tickets", value=1, ticket=ticket)
            self.assertEqual(told["was_ours"], was_ours, ticket)
        caller.get("/v1/decide/d")
        self.looks(caller)
        self.assertEqual(caller.post("/v1/counters/c/add", delta=-3, op_id="1")["value"], -3)
        self.assertEqual(caller.post("/v1/counters/c/add", delta=-3, op_id="1")["was_repeat"], True)
        self.assertEqual(caller.post("/v1/counters/c/add", delta=-3, op_id="2", floor=-5)["code"], "refused")
        self.assertEqual(caller.get("/v1/counters/c")["value"], -3)
        self.stock(caller)
        self.queues(caller)
        self.tickets(caller)
        names = {operation["operationId"] for operation in caller.document.operations.values()}
        self.assertEqual(names - Caller.operations, set(), "not one good answer of these was seen")

    def looks(self, caller: Caller) -> None:
        mine = caller.post("/v1/tasks/looked-at/acquire", hold_for="1m")
        self.assertEqual(caller.get("/v1/tasks/looked-at")["owner"], mine["owner"])
        self.assertIn("looked-at", [each["name"] for each in caller.get("/v1/tasks?max=500")["tasks"]])
        self.assertEqual(caller.post("/v1/tasks/looked-at/release", epoch=mine["epoch"] + 1)["code"], "refused")
        self.assertEqual(caller.post("/v1/tasks/looked-at/release", epoch=mine["epoch"])["state"], "free")
        self.assertEqual(caller.get("/v1/tasks/none").status, 404)
        self.assertEqual(caller.get("/v1/once/k")["result"]["content"], "done")
        begun = caller.post("/v1/once/begun", hold_for="1m")
        self.assertEqual(caller.post("/v1/once/begun/release", epoch=begun["epoch"])["was_repeat"], False)

    def stock(self, caller: Caller) -> None:
        self.assertEqual(caller.post("/v1/stock/apple/add", delta=5, op_id="delivery-1")["available"], 5)
        self.assertEqual(caller.post("/v1/stock/apple/add", delta=5, op_id="delivery-1")["was_repeat"], True)
        self.assertEqual(caller.post("/v1/reservations/r1", items={"apple": 2}).status, 201)
        self.assertEqual(caller.post("/v1/reservations/r1", items={"apple": 2}).status, 200)
        self.assertEqual(caller.post("/v1/reservations/r1", items={"apple": 1}).status, 422)
        self.assertEqual(caller.post("/v1/reservations/r2", items={"apple": 4}).status, 409)
        self.assertEqual(caller.post("/v1/reservations/r2", items={"x" * 501: 1})["member"], "/items")
        self.assertEqual(caller.get("/v1/stock/apple")["available"], 3)
        self.assertEqual(caller.get("/v1/reservations/r1")["state"], "held")
        self.assertEqual(caller.post("/v1/reservations/r1/confirm")["state"], "confirmed")
        self.assertEqual(caller.post("/v1/reservations/r1/cancel").status, 409)
        self.assertEqual(caller.post("/v1/reservations/none/cancel").status, 404)
        caller.post("/v1/reservations/r3", items={"apple": 3})
        self.assertEqual(caller.post("/v1/reservations/r3/cancel")["state"], "cancelled")
        self.assertEqual(caller.post("/v1/reservations/r3", items={"apple": 3})["code"], "ended")
        self.assertEqual(caller.get("/v1/stock/apple")["available"], 3)

    def queues(self, caller: Caller) -> None:
        for body in "12345":
            caller.post("/v1/queues/q/send", group="g", body=body, dedup_id=body)
        self.assertEqual(caller.post("/v1/queues/q/send", group="g", body="1", dedup_id="1")["was_duplicate"], True)
        self.assertEqual(caller.post("/v1/queues/q/send", group="g", body="other", dedup_id="1").status, 422)
        batch = caller.post("/v1/queues/q/receive", max=2)["batch"]
        self.assertEqual([each["body"] for each in batch["messages"]], ["1", "2"])
        self.assertEqual(caller.post("/v1/queues/q/receive")["batch"], None)
        receipt = batch["receipt"]
        self.assertTrue(receipt.startswith("1.1.2/"), receipt)
        for numbers in ("1.1.3", "1.1.5", "1.2.3", "1.1.9223372036854775807", "1.9223372036854775807.9223372036854775807"):
            for settle in ("ack", "nack", "park"):
                altered = caller.post(f"/v1/queues/q/{settle}", receipt=numbers + receipt.removeprefix("1.1.2"))
                self.assertEqual((altered.status, altered["code"]), (422, "rejected"), numbers)
        caller.post("/v1/queues/q/extend", receipt=receipt, visibility="1m")
        self.assertEqual(caller.post("/v1/queues/q/ack", receipt=receipt, count=1)["left"], 4)
        self.assertNotIn("expires_at_ms", caller.post("/v1/queues/q/nack", receipt=receipt).body)
        self.assertEqual(caller.post("/v1/queues/q/ack", receipt=receipt)["code"], "refused")
        batch = caller.post("/v1/queues/q/receive")["batch"]
        caller.post("/v1/queues/q/park", receipt=batch["receipt"], reason="looks bad")
        self.assertEqual(caller.get("/v1/queues/q/peek?group=g")["parked_because"], "looks bad")
        self.assertEqual(caller.get("/v1/queues/q/stats")["parked_messages"], 4)
        caller.post("/v1/queues/q/redrive", group="g", skip_first=True)
        receipt = caller.post("/v1/queues/q/receive")["batch"]["receipt"]
        self.assertEqual(caller.post("/v1/queues/q/redrive", group="g", to="r")["code"], "busy")
        for _ in range(2):
            self.assertEqual(caller.post("/v1/queues/q/nack", receipt=receipt)["left"], 3)
        self.assertEqual(caller.post("/v1/queues/q/redrive", group="g", to="r", max=2).body, {"moved": 2, "left": 1})
        self.assertEqual(caller.post("/v1/queues/q/redrive", group="g", to="q").status, 400)
        messages = caller.post("/v1/queues/r/receive")["batch"]["messages"]
        self.assertEqual([each["body"] for each in messages], ["3", "4"])

    def tickets(self, caller: Caller) -> None:
        self.assertEqual(caller.post("/v1/counters/t/add", delta=1, op_id="1", mode="available")["value"], 1)
        self.assertEqual(caller.get("/v1/tickets").body, {"tickets": [], "next": None})
        self.assertEqual(caller.post("/v1/quotas/shop", items={"apple": 2})["state"], "open")
        self.assertEqual(caller.get("/v1/quotas")["quotas"][0]["left"], {"apple": 2})
        self.assertEqual(caller.post("/v1/sales/one", items={"apple": 1})["ticket"], "one")
        self.assertEqual(caller.post("/v1/sales/shop", items={"apple": 1})["code"], "mismatch")
        caller.post("/v1/quotas/shop/give-back")
        self.eventually(lambda: caller.get("/v1/tickets/one")["state"] == "confirmed")
        self.eventually(lambda: caller.get("/v1/stock/apple")["available"] == 2)
        with self.away():
            self.assertEqual(caller.post("/v1/decide/e", value=1, mode="available", ticket="mine").status, 202)
            self.assertEqual(caller.post("/v1/counters/t/add", delta=1, op_id="2", mode="available").status, 202)
            after = caller.post("/v1/counters/t/add", delta=-9, op_id="3", floor=0, mode="available")
            self.assertEqual(after.status, 202)
            self.assertEqual(caller.post("/v1/queues/p/send", group="g", body="x", mode="available").status, 202)
        self.eventually(lambda: caller.get("/v1/tickets/3")["state"] == "rejected")
        self.assertEqual(caller.post("/v1/tickets/3/compensated")["was_repeat"], False)
        self.eventually(lambda: caller.get("/v1/tickets")["tickets"] == [])
        self.assertEqual(caller.get("/v1/decide/e")["value"], 1)


class Rights(Served):
    def test_callers_of_two_servers_are_never_in_the_same_place_at_once(self):
        servers = [self.start(), self.start()]
        seen, inside, most = [], 0, 0
        lock = threading.Lock()
        failures = []

        def work(server: Server) -> None:
            nonlocal inside, most
            caller = Caller(server)
            for _ in range(4):
                mine = caller.post("/v1/tasks/t/acquire", wait="2m", hold_for="5m")
                if mine.status != 201:
                    failures.append(mine)
                    return
                with lock:
                    inside += 1
                    most = max(most, inside)
                    seen.append(mine["epoch"])
                time.sleep(0.002)
                with lock:
                    inside -= 1
                caller.post(f"/v1/guards/{mine['guard']}/release")

        threads = [threading.Thread(target=work, args=(servers[i % 2],)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(most, 1)
        self.assertEqual(seen, sorted(set(seen)), "each has an epoch of its own, and they rise")

    def test_the_right_of_a_server_that_was_killed_expires(self):
        first, second = self.start(), self.start()
        Caller(first).post("/v1/tasks/t/acquire", ttl="2s", hold_for="1h")
        first.kill()
        other = Caller(second)
        self.assertEqual(other.post("/v1/tasks/t/acquire")["code"], "busy")
        mine = other.post("/v1/tasks/t/acquire", wait="1m")
        self.assertEqual((mine.status, mine["epoch"]), (201, 2))

    def test_it_is_renewed_until_the_callers_own_deadline_and_let_go_then(self):
        first, second = self.start(), self.start()
        mine = Caller(first).post("/v1/tasks/t/acquire", ttl="1h", hold_for="2s")
        other = Caller(second).post("/v1/tasks/t/acquire", wait="1m")
        self.assertEqual(other.status, 201, "an hour before its lease ends")
        self.assertEqual(Caller(first).get(f"/v1/guards/{mine['guard']}")["code"], "let_go")

    def test_who_hangs_up_while_waiting_is_not_given_it(self):
        first, second = self.start(), self.start()
        holder = Caller(first)
        mine = holder.post("/v1/tasks/t/acquire", hold_for="5m")
        gone = second.connect()
        gone.request("POST", "/v1/tasks/t/acquire", '{"wait":"4m","ttl":"1h","hold_for":"2h"}',
                     {"Content-Type": "application/json"})
        time.sleep(0.2)
        gone.close()
        time.sleep(0.2)
        holder.post(f"/v1/guards/{mine['guard']}/release")
        self.assertEqual(holder.post("/v1/tasks/t/acquire", wait="2m").status, 201)

    def test_those_who_wait_do_not_lock_out_who_holds_it(self):
        server = self.start("--max-requests", "20")
        holder = Caller(server)
        mine = holder.post("/v1/tasks/t/acquire", hold_for="5m")
        waiting = [server.connect() for _ in range(20)]
        for each in waiting:
            each.request("POST", "/v1/tasks/t/acquire", '{"wait":"4m","hold_for":"100ms"}',
                         {"Content-Type": "application/json"})

        def answered() -> list:
            sockets = select.select([each.sock for each in waiting], [], [], 0)[0]
            return [each for each in waiting if each.sock in sockets]

        self.eventually(lambda: len(answered()) >= 2)
        refused = answered()
        self.assertEqual([each.getresponse().status for each in refused], [503] * 2)
        self.assertEqual(holder.get("/healthz").status, 200)
        self.assertEqual(holder.post(f"/v1/guards/{mine['guard']}/extend", hold_for="5m").status, 200)
        self.assertEqual(holder.post(f"/v1/guards/{mine['guard']}/release").status, 200)
        self.assertEqual([each.getresponse().status for each in waiting if each not in refused], [201] * 18)
        for each in waiting:
            each.close()

    def test_who_hangs_up_while_waiting_leaves_his_place_to_others(self):
        first, second = self.start(), self.start("--max-guards", "1")
        holder = Caller(first)
        holder.post("/v1/tasks/t/acquire", hold_for="5m")
        holder.post("/v1/once/k", hold_for="5m")
        other = Caller(second)

        def has_place() -> bool:
            mine = other.post("/v1/tasks/free/acquire")
            if mine.status == 201:
                other.post(f"/v1/guards/{mine['guard']}/release")
            return mine.status == 201

        for path in ("/v1/tasks/t/acquire", "/v1/once/k"):
            gone = second.connect()
            gone.request("POST", path, '{"wait":"4m"}', {"Content-Type": "application/json"})
            time.sleep(0.2)  # a look in between would take the place
            gone.close()
            self.eventually(has_place)

    def test_a_server_that_is_stopped_lets_callers_finish_and_gives_back_the_rest(self):
        first, second = self.start("--drain-timeout", "3s"), self.start()
        caller, looker = Caller(first), Caller(first)
        quick = caller.post("/v1/tasks/quick/acquire", ttl="1h", hold_for="1h")
        slow = caller.post("/v1/tasks/slow/acquire", ttl="1h", hold_for="1h")
        told = []
        waits = threading.Thread(target=lambda: told.append(looker.get(f"/v1/guards/{slow['guard']}?wait=2m")))
        waits.start()
        time.sleep(0.2)
        first.process.send_signal(signal.SIGTERM)
        while caller.get("/healthz")["status"] != "draining":
            time.sleep(0.01)
        self.assertEqual(caller.post("/v1/tasks/new/acquire")["code"], "draining")
        self.assertEqual(caller.post(f"/v1/guards/{quick['guard']}/release").status, 200)
        self.assertEqual(first.process.wait(serve.PATIENCE_SECONDS), 0)
        waits.join()
        self.assertEqual(told[0]["code"], "drained")
        other = Caller(second)
        self.assertEqual(other.post("/v1/tasks/quick/acquire").status, 201)
        self.assertEqual(other.post("/v1/tasks/slow/acquire").status, 201)

    def test_500_callers_want_one_task_and_one_of_them_has_it(self):
        server = self.start("--max-connections", "600", "--max-requests", "600")
        connections = [server.connect() for _ in range(500)]
        for connection in connections:
            connection.request("POST", "/v1/tasks/t/acquire", "{}", {"Content-Type": "application/json"})
        answers = [connection.getresponse() for connection in connections]
        statuses = [answer.status for answer in answers]
        for connection in connections:
            connection.close()
        self.assertEqual(statuses.count(201), 1)
        self.assertEqual(statuses.count(409), 499)


class AFileThatIsAway(Served):
    def test_it_is_a_store_that_cannot_be_reached_until_it_is_back(self):
        caller = Caller(self.start("--journal", str(self.folder / "journal"), "--store-patience", "300ms"))
        self.assertEqual(caller.post("/v1/counters/c/add", delta=1, op_id="1")["value"], 1)
        elsewhere = self.folder / "away"
        elsewhere.mkdir()
        files = [f"holdfast.db{end}" for end in ("", "-wal", "-shm")]
        for name in files:
            (self.folder / name).rename(elsewhere / name)
        for asked in (caller.post("/v1/counters/c/add", delta=1, op_id="2"), caller.get("/v1/counters/c"),
                      caller.post("/v1/tasks/t/acquire"), caller.post("/v1/queues/q/receive"),
                      caller.get("/v1/tasks")):
            self.assertEqual((asked.status, asked["code"]), (503, "unavailable"))
            self.assertIn("put it back", asked["detail"])
        self.assertEqual(caller.post("/v1/counters/c/add", delta=1, op_id="3", mode="available").status, 202)
        self.assertFalse((self.folder / "holdfast.db").exists(), "no other one in its place")
        for name in files:
            (elsewhere / name).rename(self.folder / name)
        self.eventually(lambda: caller.get("/v1/tickets/3")["state"] == "confirmed")
        self.assertEqual(caller.get("/v1/counters/c")["value"], 2)
        self.assertEqual(caller.post("/v1/tasks/t/acquire").status, 201)

    def test_a_server_that_has_a_journal_is_started_while_its_table_is_away_and_makes_no_other(self):
        options = ("--journal", str(self.folder / "journal"), "--store-patience", "300ms")
        server = self.start(*options)
        self.assertEqual(Caller(server).post("/v1/counters/c/add", delta=1, op_id="1").status, 200)
        self.assertEqual(server.stop(), 0)
        table = self.folder / "holdfast.db"
        table.rename(self.folder / "elsewhere")
        caller = Caller(self.start(*options))
        asked = caller.get("/v1/counters/c")
        self.assertEqual((asked.status, asked["code"]), (503, "unavailable"))
        self.assertIn("is the disk that it is on there?", asked["detail"])
        self.assertEqual(caller.post("/v1/counters/c/add", delta=1, op_id="2", mode="available").status, 202)
        self.assertFalse(table.exists(), "no other one in its place")
        (self.folder / "elsewhere").rename(table)
        self.eventually(lambda: caller.get("/v1/tickets/2")["state"] == "confirmed")
        self.assertEqual(caller.get("/v1/counters/c")["value"], 2)


class OnDynamoDb(Served):
    """In front of what is to be tried on DynamoDB Local as well."""

    def setUp(self):
        super().setUp()
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_CONFIG_FILE": "/dev/null",
                "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
        environment = mock.patch.dict(os.environ, keys)
        environment.start()
        self.addCleanup(environment.stop)
        dynamodb = Shared("local")
        self.addCleanup(dynamodb.close)
        self.proxy = DynamoDbProxy(dynamodb.port)
        self.addCleanup(self.proxy.close)
        self.store = (f"dynamodb://serve-{os.urandom(8).hex()}?region=us-east-1"
                      f"&endpoint=http://127.0.0.1:{self.proxy.port}")
        subprocess.run([serve.PROGRAM, "init", "--store", self.store], stdout=subprocess.DEVNULL, check=True)

    @contextlib.contextmanager
    def away(self):
        self.proxy.refuse(True)
        try:
            yield
        finally:
            self.proxy.refuse(False)


class TheDocumentOnDynamoDb(OnDynamoDb, TheDocument):
    pass


class RightsOnDynamoDb(OnDynamoDb, Rights):
    pass


class BesideTheCommandLine(Served):
    def cli(self, *words: str):
        ended = subprocess.run([serve.PROGRAM, *words], capture_output=True, text=True, check=False,
                               env={**os.environ, "HOLDFAST_STORE": self.store}, timeout=serve.PATIENCE_SECONDS)
        self.assertEqual(ended.stderr, "")
        return ended.returncode, ended.stdout

    def test_what_was_decided_here_is_told_there(self):
        caller = Caller(self.start())
        caller.post("/v1/decide/text", value="x y")
        caller.post("/v1/decide/json", value={"a": [1, True, None]})
        self.assertEqual(self.cli("decide", "text", "z"), (0, "x y\n"))
        self.assertEqual(self.cli("decide", "json", "z"), (0, '{"a":[1,true,null]}\n'))
        self.assertIn('"value":{"a":[1,true,null]}', self.cli("decide", "json", "z", "--json")[1])

    def test_what_was_accepted_provisionally_here_is_told_there(self):
        journal = str(self.folder / "journal")
        caller = Caller(self.start("--journal", journal, "--store-patience", "300ms"))
        with self.away():
            for key, value in (("number", 42), ("object", {"a": None})):
                self.assertEqual(caller.post(f"/v1/decide/{key}", value=value, mode="available").status, 202)
                asked = [serve.PROGRAM, "decide", key, "mine", "--mode", "available", "--journal", journal, "--store",
                         self.store, "--store-patience", "300ms"]
                told = [subprocess.run([*asked, *more], capture_output=True, text=True, check=False,
                                       timeout=serve.PATIENCE_SECONDS) for more in ([], ["--json"])]
                self.assertEqual([ended.returncode for ended in told], [79, 79])
                self.assertTrue(told[0].stdout.endswith(f" {json.dumps(value, separators=(',', ':'))}\n"), told[0].stdout)
                self.assertEqual(json.loads(told[1].stdout)["proposed"], value)

    def test_what_both_may_be_asked_has_one_default(self):
        document, compared = Caller(self.start()).document, 0
        seconds = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

        def value(text: str):
            match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text)
            return int(match[1]) * seconds[match[2]] if match else int(text) if text.isdigit() else text

        for command, path in {"run": "/v1/tasks/{task}/acquire", "once": "/v1/once/{key}",
                              "counter add": "/v1/counters/{key}/add", "stock add": "/v1/stock/{sku}/add",
                              "stock reserve": "/v1/reservations/{id}", "queue send": "/v1/queues/{queue}/send",
                              "queue receive": "/v1/queues/{queue}/receive",
                              "queue nack": "/v1/queues/{queue}/nack"}.items():
            body = document.operations["POST", path]["requestBody"]["content"]["application/json"]["schema"]
            said = " ".join(self.cli(*command.split(), "--help")[1].split())
            for name, schema in document.resolve(body)["properties"].items():
                option = re.search(rf" --{name.replace('_', '-')} [A-Z]+ [^\[]*\[([^;\]]*)", said)
                if "default" in schema and option and name != "wait":  # none in both, in other words
                    self.assertEqual(value(option[1]), value(str(schema["default"])), f"{command} --{name}")
                    compared += 1
        self.assertGreater(compared, 8)

    def test_what_was_finished_here_is_told_there(self):
        caller = Caller(self.start())
        for key, succeeded in (("good", True), ("bad", False)):
            guard = caller.post(f"/v1/once/{key}")["guard"]
            caller.post(f"/v1/once/{key}/finish", guard=guard, content="what came of it", succeeded=succeeded)
        self.assertEqual(self.cli("once", "good", "false"), (0, "what came of it"))
        self.assertEqual(self.cli("once", "bad", "true"), (1, "what came of it"))


class Access(Served):
    TOKEN = "0123456789abcdef-secret"

    def test_beyond_this_machine_it_does_not_start_without_a_token(self):
        said = self.refused("--listen", "0.0.0.0:0")
        self.assertEqual(self.code, 2)
        self.assertIn("--token", said)
        self.assertIn("where the token is", self.refused("--token", self.TOKEN))
        os.environ["SERVE_TOKEN_SHORT"] = "short"
        self.assertNotIn("short\n", self.refused("--token", "env:SERVE_TOKEN_SHORT"))
        self.assertEqual(self.code, 2)

    def test_with_one_only_who_shows_it_is_served(self):
        server = self.start(listen="0.0.0.0:0", token=self.TOKEN)
        server.address = server.address.replace("0.0.0.0", "127.0.0.1")
        self.assertEqual(Caller(server).post("/v1/tasks/t/acquire").status, 201)
        for token in ("", "wrong", self.TOKEN[:-1], self.TOKEN + "x"):
            refused = Caller(server, token).post("/v1/tasks/u/acquire")
            self.assertEqual(refused.status, 401)
            self.assertEqual(refused.headers["WWW-Authenticate"], "Bearer")
        self.assertEqual(server.stop(), 0)
        self.assertNotIn("secret", "".join(server.process.communicate()))

    def test_a_web_page_cannot_ask_in_a_browsers_name(self):
        caller = Caller(self.start())
        self.assertEqual(caller.ask("POST", "/v1/tasks/t/acquire", "{}", {"Host": "evil.example"}).status, 421)
        self.assertEqual(caller.ask("POST", "/v1/tasks/t/acquire", "{}", {"Content-Type": "text/plain"}).status, 415)

    def test_a_unix_socket_is_its_owners_and_is_replaced_when_it_was_left_behind(self):
        path = f"{self.folder}/s"
        server = self.start(listen=f"unix:{path}")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(Caller(server).post("/v1/tasks/t/acquire").status, 201)
        self.assertIn("another process", self.refused("--listen", f"unix:{path}"))
        server.kill()
        self.assertTrue(os.path.exists(path))
        second = self.start(listen=f"unix:{path}")
        self.assertEqual(Caller(second).get("/healthz").status, 200)
        self.assertEqual(second.stop(), 0)
        self.assertFalse(os.path.exists(path))


class Hostile(Served):
    def test_nothing_that_is_sent_stops_it(self):
        server = self.start("--max-body", "1000B")
        head = b"POST /v1/tasks/t/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for sent, status in {
            b"\x00\xff\x16\x03\r\n\r\n": b"400",
            b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n": b"431",
            head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": b"400",
            head + b"Content-Length: 1001\r\n\r\n": b"413",
            head + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFF\r\n": b"413",
            head + b"Content-Length: 1\r\n\r\n{": b"400",
            head + b"Content-Length: 600\r\n\r\n" + b"[" * 600: b"400",
            head + b'Content-Length: 21\r\n\r\n{"ttl":1,"ttl":"10s"}': b"400",
            head + b'Content-Length: 14\r\n\r\n{"ttl":"\xff10s"}': b"400",
            b"GET /v1/counters/%ff HTTP/1.1\r\nHost: localhost\r\n\r\n": b"400",
            b"GET /v1/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n": b"404",
            b"TRACE /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n": b"405",
        }.items():
            with server.raw() as connection:
                connection.sendall(sent)
                answer = connection.recv(65536)
                self.assertEqual(answer[9:12], status, sent[:80])
                self.assertIn(b"application/problem+json", answer)
        self.assertEqual(Caller(server).get("/healthz").status, 200)
        self.assertEqual(Caller(server).post("/v1/tasks/t/acquire").status, 201)

    def test_400_that_say_nothing_hold_nobody_up(self):
        server = self.start()
        idle = [server.raw() for _ in range(400)]
        self.assertEqual(Caller(server).post("/v1/tasks/t/acquire").status, 201)
        for connection in idle:
            connection.close()


if __name__ == "__main__":
    serve.main_program()
    unittest.main()
