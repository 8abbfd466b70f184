#!/usr/bin/env python3
"""`holdfast serve --lambda-extension` beside a small fake of the Extensions API, and the example functions with it.

  test_lambda_extension.py PROGRAM [TEST…]
"""
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

import server as serve
from lambda_api import EXTENSION, InLambda
from server import PATIENCE_SECONDS, Caller, OnDynalite, Server

FOLDER = pathlib.Path(__file__).resolve().parent
EXAMPLES = FOLDER.parents[1] / "examples"


class Function(Caller):
    """What asks on behalf of one invocation; of none where `invocation` is empty."""

    def __init__(self, server: Server, invocation: str = ""):
        self.invocation = invocation
        super().__init__(server)

    def ask(self, method, path, body=None, headers=None):
        said = {"Lambda-Runtime-Aws-Request-Id": self.invocation} if self.invocation else {}
        return super().ask(method, path, body, {**said, **(headers or {})})

    def hold(self, task: str, **options) -> str:
        """For hours, unless it is given back. The path of its guard."""
        mine = self.post(f"/v1/tasks/{task}/acquire", **{"ttl": "1h", "hold_for": "2h", **options})
        assert mine.status == 201, mine
        return f"/v1/guards/{mine['guard']}"


class ExtensionTest(InLambda):
    def setUp(self):
        super().setUp()
        os.environ["AWS_LAMBDA_RUNTIME_API"] = self.api.address
        self.addCleanup(os.environ.pop, "AWS_LAMBDA_RUNTIME_API", None)

    def start(self, *arguments: str) -> Server:
        """The extension, when it has said that it is ready."""
        server = Server(self.store, "--lambda-extension", *arguments)
        self.addCleanup(server.kill)
        self.assertTrue(self.api.wait_until_asked())
        return server

    def invoke(self, request_id: str, seconds: float = 600) -> None:
        """The extension is told, and is ready for the next one."""
        self.api.send_event("INVOKE", seconds, requestId=request_id)
        self.assertTrue(self.api.wait_until_asked())

    def other(self) -> Caller:
        """Of another server on the same table."""
        server = Server(self.store)
        self.addCleanup(server.kill)
        return Caller(server)

    def refused(self, *arguments: str, environment=None):
        ended = subprocess.run([serve.PROGRAM, "serve", "--store", self.store, "--lambda-extension", *arguments],
                               env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False,
                               timeout=PATIENCE_SECONDS)
        self.assertTrue(ended.stderr.startswith("holdfast: "), ended.stderr)
        return ended


class Life(ExtensionTest):
    def test_it_registers_under_the_name_of_its_file_for_both_kinds_of_event(self):
        self.start()
        self.assertEqual(self.api.registered,
                         [(os.path.basename(serve.PROGRAM), {"events": ["INVOKE", "SHUTDOWN"]})])

    def test_its_file_may_have_another_name(self):
        self.start("--extension-name", "my-extension")
        self.assertEqual(self.api.registered[0][0], "my-extension")

    def test_it_serves_before_it_says_that_it_is_ready_and_between_invocations(self):
        extension = self.start()
        caller = Caller(extension)
        self.assertEqual(caller.post("/v1/decide/k", value=1)["value"], 1)
        self.invoke("1")
        self.assertEqual(caller.get("/v1/decide/k")["value"], 1)

    def test_that_a_table_in_a_file_is_of_one_environment_only_is_told(self):
        extension = self.start()
        extension.process.kill()
        self.assertIn("dynamodb://TABLE is one for all", extension.process.communicate()[1])

    def test_outside_of_lambda_it_says_so(self):
        ended = self.refused(environment={"AWS_LAMBDA_RUNTIME_API": ""})
        self.assertEqual(ended.returncode, 2)
        self.assertIn("AWS_LAMBDA_RUNTIME_API", ended.stderr)

    def test_a_registration_that_is_refused_is_told(self):
        for status in (400, 403, 500):
            self.api.fail_next(f"{EXTENSION}/register", status, b'{"errorMessage":"no"}')
            ended = self.refused()
            self.assertEqual(ended.returncode, 1)
            self.assertIn(str(status), ended.stderr)
            self.assertIn("/opt/extensions", ended.stderr)

    def test_an_api_that_is_not_there_is_told(self):
        ended = self.refused(environment={"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9"})
        self.assertEqual(ended.returncode, 1)
        self.assertIn("127.0.0.1:9", ended.stderr)

    def test_what_keeps_it_from_starting_is_an_error_of_the_init(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for count, arguments in enumerate((["--listen", address], ["--listen", "0.0.0.0:0"],
                                               ["--listen", "nonsense"],
                                               ["--journal", str(self.folder / "j")]), 1):
                ended = self.refused(*arguments)
                self.assertIn(ended.returncode, (1, 2))
                told = self.api.wait_told("/init/error", count)
                self.assertEqual(told.error_type, "Holdfast.Init")
                self.assertEqual(told.headers["Lambda-Extension-Identifier"], "extension-1")
                self.assertIn(told.json()["errorMessage"], ended.stderr)
        self.assertFalse(self.api.asked.acquire(blocking=False), "it never said that it was ready")

    def test_an_api_that_fails_later_ends_it_and_nothing_stays_held(self):
        for count, status in enumerate((403, 500), 1):
            extension = self.start()
            self.invoke("1")
            Function(extension, "1").hold(f"t{status}")
            self.api.fail_next(f"{EXTENSION}/event/next", status)
            self.api.send_event("INVOKE", requestId="2")
            self.assertEqual(extension.process.wait(PATIENCE_SECONDS), 1)
            self.assertEqual(self.api.wait_told("/exit/error", count).error_type, "Holdfast.Extension")
            self.assertEqual(self.other().post(f"/v1/tasks/t{status}/acquire").status, 201)

    def test_an_event_that_makes_no_sense_ends_it(self):
        extension = self.start()
        self.api.events.put({"eventType": "INVOKE", "deadlineMs": "soon"})
        self.assertEqual(extension.process.wait(PATIENCE_SECONDS), 1)
        self.api.wait_told("/exit/error")

    def test_an_event_of_another_kind_is_nothing_to_it(self):
        extension = self.start()
        self.api.send_event("SOMETHING")
        self.assertTrue(self.api.wait_until_asked())
        self.invoke("1")
        Function(extension, "1").hold("t")

    def test_shutdown_gives_all_back_and_ends_with_0(self):
        extension = self.start()
        self.invoke("1")
        function = Function(extension, "1")
        function.hold("t")
        self.assertEqual(function.post("/v1/once/k", ttl="1h", hold_for="2h").status, 201)
        function.post("/v1/queues/q/send", group="g", body="m")
        self.assertTrue(function.post("/v1/queues/q/receive", visibility="1h")["batch"])
        unnamed = Function(extension)
        unnamed.hold("u")
        self.api.send_event("SHUTDOWN", 2, shutdownReason="spindown")
        self.assertEqual(extension.process.wait(PATIENCE_SECONDS), 0)
        other = self.other()
        self.assertEqual(other.post("/v1/tasks/t/acquire").status, 201)
        self.assertEqual(other.post("/v1/tasks/u/acquire").status, 201)
        self.assertEqual(other.post("/v1/once/k", abandoned="hold")["code"], "held", "it may have been done")
        self.assertEqual(other.post("/v1/once/k")["was_abandoned"], True)
        self.assertEqual(other.post("/v1/queues/q/receive")["batch"]["messages"][0]["body"], "m")

    def test_a_shutdown_without_time_ends_it_all_the_same(self):
        extension = self.start()
        self.invoke("1")
        Function(extension, "1").hold("t")
        self.api.send_event("SHUTDOWN", -5, shutdownReason="timeout")
        self.assertEqual(extension.process.wait(PATIENCE_SECONDS), 0)

    def test_killed_it_leaves_what_it_held_to_run_out(self):
        extension = self.start()
        self.invoke("1")
        Function(extension, "1").hold("t", ttl="1s")
        extension.kill()
        self.assertEqual(self.other().post("/v1/tasks/t/acquire", wait="1m")["epoch"], 2)
        self.assertEqual(Function(self.start()).get("/healthz").status, 200)


class Invocations(ExtensionTest):
    def test_what_an_invocation_held_is_given_back_when_the_next_one_begins(self):
        extension = self.start()
        self.invoke("1")
        first = Function(extension, "1")
        guard = first.hold("t")
        self.assertEqual(first.get(guard).status, 200)
        self.invoke("2")
        self.assertEqual(first.get(guard)["code"], "let_go")
        self.assertEqual(Function(extension, "2").post("/v1/tasks/t/acquire").status, 201)
        self.assertEqual(first.post("/v1/tasks/other/acquire")["code"], "lost", "it is over")

    def test_what_one_held_that_timed_out_is_given_back_at_its_deadline(self):
        extension = self.start()
        self.invoke("1", 2)
        Function(extension, "1").hold("t")
        self.assertEqual(self.other().post("/v1/tasks/t/acquire", wait="1m").status, 201, "an hour before its end")

    def test_messages_that_were_not_acknowledged_are_given_out_again(self):
        extension = self.start()
        self.invoke("1")
        first = Function(extension, "1")
        for body in "ab":
            first.post("/v1/queues/q/send", group=body, body=body)
        done = first.post("/v1/queues/q/receive", visibility="1h")["batch"]
        first.post("/v1/queues/q/receive", visibility="1h")
        first.post("/v1/queues/q/ack", receipt=done["receipt"])
        self.invoke("2")
        again = self.other().post("/v1/queues/q/receive", wait="1m")["batch"]
        self.assertNotEqual(again["messages"][0]["body"], done["messages"][0]["body"])
        self.assertEqual(again["receives"], 2)

    def test_who_waits_in_an_invocation_waits_no_longer_than_that(self):
        extension, other = self.start(), self.other()
        other.post("/v1/tasks/t/acquire", ttl="1h", hold_for="2h")
        self.invoke("1")
        answers = []
        threads = [threading.Thread(target=lambda path=path: answers.append(
            Function(extension, "1").post(path, wait="5m"))) for path in ("/v1/tasks/t/acquire", "/v1/queues/q/receive")]
        for thread in threads:
            thread.start()
        self.invoke("2")
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        self.assertEqual([answer["code"] for answer in answers], ["lost", "lost"])

    def test_a_request_that_comes_before_its_invocation_was_told_of_waits_for_that(self):
        extension = self.start()
        self.invoke("1")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(Function(extension, "2").hold("t")))
        thread.start()
        time.sleep(0.2)  # not needed: it has the request come first, most often
        self.assertEqual(answers, [])
        self.invoke("2")
        thread.join(PATIENCE_SECONDS)
        self.assertEqual(Function(extension, "2").get(answers[0]).status, 200, "it is the second one's")

    def test_one_that_is_never_told_of_is_refused(self):
        extension = self.start("--store-patience", "300ms")
        self.assertEqual(Function(extension, "unheard-of").post("/v1/tasks/t/acquire")["code"], "unavailable")

    def test_who_does_not_say_which_one_asks_is_not_robbed_of_what_it_was_told(self):
        extension, other = self.start(), self.other()
        self.invoke("1")
        unnamed = Function(extension)
        guard = unnamed.hold("t", ttl="2s")
        believed_until_ms = unnamed.get(guard)["believed_until_ms"]
        self.invoke("2")
        self.assertEqual(unnamed.get(guard)["code"], "let_go")
        self.assertEqual(other.post("/v1/tasks/t/acquire", wait="1m").status, 201)
        self.assertGreaterEqual(time.time() * 1000, believed_until_ms)

    def test_the_same_event_may_come_again_under_the_same_id(self):
        extension = self.start()
        self.invoke("1", 0.5)
        Function(extension, "1").hold("t")
        self.eventually(lambda: Function(extension, "1").post("/v1/tasks/u/acquire").status == 410)
        self.invoke("1")
        Function(extension, "1").hold("t")


class Frozen(OnDynalite, ExtensionTest):
    def test_frozen_for_longer_than_a_lease_it_does_not_say_that_it_is_held(self):
        extension, other = self.start(), self.other()
        self.invoke("1")
        named, unnamed = Function(extension, "1"), Function(extension)
        guards = [named.hold("t", ttl="1s"), unnamed.hold("u", ttl="1s")]
        extension.process.send_signal(signal.SIGSTOP)
        for task in "tu":
            self.assertEqual(other.post(f"/v1/tasks/{task}/acquire", wait="1m")["epoch"], 2)
        asked = [threading.Thread(target=lambda function=function, guard=guard: answers.append(function.get(guard)))
                 for function, guard in zip((named, unnamed), guards)]
        answers = []
        for thread in asked:
            thread.start()  # what was asked while it was frozen is answered first when it goes on
        extension.process.send_signal(signal.SIGCONT)
        for thread in asked:
            thread.join(PATIENCE_SECONDS)
        self.assertEqual({answer.status for answer in answers}, {410})
        self.invoke("2")
        Function(extension, "2").hold("v")
        for task in "tu":
            self.assertEqual(other.post(f"/v1/tasks/{task}/acquire").status, 409, "the other one still has it")

    def test_a_renewal_that_was_frozen_on_its_way_brings_nothing_back(self):
        extension, other = self.start(), self.other()
        for round_ in range(5):
            self.invoke(f"{round_}")
            function = Function(extension, f"{round_}")
            guard = function.hold("t", ttl="300ms")
            time.sleep(0.075 * round_)  # a renewal comes every 75 ms: stop in different places
            extension.process.send_signal(signal.SIGSTOP)
            theirs = other.post("/v1/tasks/t/acquire", wait="1m", ttl="1m", skew="100ms", hold_for="2h")
            extension.process.send_signal(signal.SIGCONT)
            self.assertEqual(function.get(guard).status, 410)
            self.assertEqual(other.get(f"/v1/guards/{theirs['guard']}").status, 200)
            other.post(f"/v1/guards/{theirs['guard']}/release")


class Examples(ExtensionTest):
    def function(self, *command: str, **variables: str) -> None:
        """A managed runtime with an example, on the same API as the extension."""
        process = subprocess.Popen(command, env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))

    def call(self, event, request_id: str):
        """As Lambda does: both are told; an event may reach the function first."""
        self.api.send_invocation(event, request_id=request_id)
        self.api.send_event("INVOKE", 60, requestId=request_id)
        told = self.api.result(request_id)
        self.assertTrue(self.api.wait_until_asked())
        return told

    def test_python_charges_once(self):
        extension, ledger = self.start(), self.folder / "ledger"
        self.function(sys.executable, str(FOLDER / "managed_runtime.py"), str(EXAMPLES / "lambda_python/handler.py"),
                      HOLDFAST_URL=f"http://{extension.address}", LEDGER=str(ledger))
        order = {"id": "17", "amount": 30}
        for request in ("a", "b", "c"):
            told = self.call({"order": order}, request)
            self.assertEqual(told.json(), {"order": "17", "charged": 30}, told)
        self.assertEqual(ledger.read_text(), "17 30 epoch 1\n")
        told = self.call({"order": {"id": "17", "amount": 31}}, "d")
        self.assertIn("mismatch", told.json()["errorMessage"])

    def test_python_has_a_charge_recorded_though_the_store_was_away(self):
        extension, ledger = self.start("--store-patience", "300ms"), self.folder / "ledger"
        os.mkfifo(ledger)  # so that the charge waits for us
        self.function(sys.executable, str(FOLDER / "managed_runtime.py"), str(EXAMPLES / "lambda_python/handler.py"),
                      HOLDFAST_URL=f"http://{extension.address}", LEDGER=str(ledger))
        event, told = {"order": {"id": "17", "amount": 30}}, []
        calling = threading.Thread(target=lambda: told.append(self.call(event, "a")))
        calling.start()
        has_begun = [serve.PROGRAM, "task", "show", "charge/17", "--once", "--store", self.store]
        self.eventually(lambda: subprocess.run(has_begun, capture_output=True, check=False).returncode == 0)
        other = sqlite3.connect(self.store.removeprefix("sqlite:"), isolation_level=None, timeout=60)
        other.execute("BEGIN EXCLUSIVE")
        self.assertEqual(ledger.read_text(), "17 30 epoch 1\n")
        time.sleep(3)
        other.close()
        calling.join(PATIENCE_SECONDS)
        self.assertEqual(told[0].json(), {"order": "17", "charged": 30})
        self.assertEqual(self.call(event, "b").json(), {"order": "17", "charged": 30})

    def test_node_works_alone(self):
        extension, index = self.start(), self.folder / "index"
        self.function(os.environ.get("HOLDFAST_NODE", "node"), str(FOLDER / "managed_runtime.mjs"),
                      str(EXAMPLES / "lambda_node/handler.mjs"),
                      HOLDFAST_URL=f"http://{extension.address}", INDEX_FILE=str(index))
        event = {"index": "books", "parts": ["a", "b"]}
        self.assertEqual(self.call(event, "1").json(), {"built": 2, "epoch": 1})
        self.assertEqual(self.call(event, "2").json(), {"built": 2, "epoch": 2})
        other = self.other()
        other.post("/v1/tasks/index%2Fbooks/acquire", ttl="1h", hold_for="2h")
        self.assertEqual(self.call(event, "3").json(), {"built": 0, "because": "another one is at it"})
        self.assertEqual(index.read_text(), "".join(f"books {part} epoch {epoch}\n" for epoch in (1, 2)
                                                    for part in "ab"))

    def test_the_layer_has_all_that_it_needs(self):
        layer = self.folder / "layer"
        subprocess.run([FOLDER.parents[1] / "deploy/lambda/layer.sh", serve.PROGRAM, layer], check=True)
        extension = Server("", command=[str(layer / "extensions/holdfast")], HOLDFAST_STORE=self.store,
                           HOLDFAST_LISTEN="127.0.0.1:0")
        self.addCleanup(extension.kill)
        self.assertTrue(self.api.wait_until_asked())
        self.assertEqual(self.api.registered[0][0], "holdfast")
        self.assertEqual(Caller(extension).post("/v1/decide/k", value=1)["value"], 1)
        mapped = pathlib.Path(f"/proc/{extension.process.pid}/maps").read_text()
        libraries = {line.split()[5] for line in mapped.splitlines() if ".so" in line}
        self.assertEqual([path for path in libraries if not path.startswith(str(layer))], [])

    def test_the_bootstrap_handles_each_event_once(self):
        for layer in (False, True):
            with self.subTest(layer=layer):
                self.setUp()
                self.look_at_bootstrap(layer)

    def look_at_bootstrap(self, layer: bool):
        task_root, ledger = self.folder / "task", self.folder / "ledger"
        task_root.mkdir()
        (task_root / "handler").symlink_to(EXAMPLES / "lambda_bootstrap/handler")
        bootstrap = (EXAMPLES / "lambda_bootstrap/bootstrap").read_text().replace("/opt/", f"{self.folder}/opt/")
        (task_root / "bootstrap").write_text(bootstrap)
        (task_root / "bootstrap").chmod(0o755)
        if layer:
            subprocess.run([FOLDER.parents[1] / "deploy/lambda/layer.sh", serve.PROGRAM, self.folder / "opt"], check=True)
        else:
            (task_root / "holdfast").symlink_to(serve.PROGRAM)
        self.function(str(task_root / "bootstrap"), LAMBDA_TASK_ROOT=str(task_root), LEDGER=str(ledger),
                      HOLDFAST_STORE=self.store, AWS_LAMBDA_FUNCTION_NAME="ship")
        event = {"detail": {"id": "order-1"}}
        for _ in range(2):
            told = self.api.invoke(event)
            self.assertEqual(told.json(), {"handled": "ship/order-1", "epoch": 1, "bytes": len(json.dumps(event))})
        self.assertEqual(ledger.read_text(), "ship/order-1\n")


if __name__ == "__main__":
    serve.main_program()
    unittest.main()
