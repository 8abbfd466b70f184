#!/usr/bin/env python3
"""`holdfast lambda` as AWS Lambda would run it: beside a small fake of the Runtime API.

  test_lambda_runtime.py PROGRAM [TEST…]
"""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import unittest

import server as serve
from lambda_api import RUNTIME, InLambda
from server import PATIENCE_SECONDS, OnDynalite


class Runtime:
    """`holdfast lambda` with a shell script as its handler, or with `command`: words behind its options."""

    def __init__(self, api_address: str, store: str, folder: pathlib.Path, script: str, *arguments: str, command=(),
                 **variables):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("HOLDFAST_", "AWS_LAMBDA"))}
        if api_address:
            environment["AWS_LAMBDA_RUNTIME_API"] = api_address
        self.process = subprocess.Popen(
            [serve.PROGRAM, "lambda", "--store", store, *arguments,
             *(command or ("--", "/bin/sh", "-c", script))],
            env={**environment, **variables}, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self):
        """Its exit code and what it said on standard error."""
        errors = self.process.communicate(timeout=PATIENCE_SECONDS)[1]
        return self.process.returncode, errors


class RuntimeTest(InLambda):
    def start(self, script: str, *arguments: str, api=None, **variables) -> Runtime:
        runtime = Runtime((api or self.api).address, self.store, self.folder, script, *arguments, **variables)
        self.addCleanup(runtime.kill)
        return runtime

    def lines(self, name: str):
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def wait_for(self, name: str) -> None:
        self.eventually((self.folder / name).exists, f"{name} is not there")

    def succeeded(self, told, body: bytes) -> None:
        self.assertTrue(told.path.endswith("/response"), told)
        self.assertEqual(told.body, body)

    def failed(self, told, kind: str, *words: str) -> None:
        self.assertTrue(told.path.endswith("/error"), told)
        self.assertEqual(told.error_type, f"Holdfast.{kind}")
        self.assertEqual(told.json()["errorType"], f"Holdfast.{kind}")
        for word in words:
            self.assertIn(word, told.json()["errorMessage"])


class Events(RuntimeTest):
    def test_the_event_is_the_input_and_what_is_printed_the_response(self):
        self.start("cat; echo noise >&2")
        self.succeeded(self.api.invoke({"a": [1, "é"]}), json.dumps({"a": [1, "é"]}).encode())
        self.succeeded(self.api.invoke({"b": 2}), b'{"b": 2}')

    def test_a_repeated_event_is_answered_with_what_was_recorded(self):
        self.start("echo ran >>runs; echo $HOLDFAST_EPOCH", "--key", "/detail/id")
        self.succeeded(self.api.invoke({"detail": {"id": "order-1"}}), b"1\n")
        self.succeeded(self.api.invoke({"detail": {"id": "order-1"}, "again": True}), b"1\n")
        self.succeeded(self.api.invoke({"detail": {"id": 7}}), b"1\n")
        self.assertEqual(len(self.lines("runs")), 2)
        once = subprocess.run([serve.PROGRAM, "once", "order-1", "--store", self.store, "--", "false"],
                              capture_output=True, check=True, timeout=PATIENCE_SECONDS)
        self.assertEqual(once.stdout, b"1\n", "the key is what the event says")

    def test_without_a_key_it_is_the_request_that_is_handled_once(self):
        self.start("echo ran >>runs; cat")
        self.succeeded(self.api.invoke({"n": 1}, request_id="request-1"), b'{"n": 1}')
        self.api.told.clear()
        self.succeeded(self.api.invoke({"n": 2}, request_id="request-1"), b'{"n": 1}')
        self.assertEqual(len(self.lines("runs")), 1)

    def test_two_functions_on_one_table_have_keys_of_their_own(self):
        other = self.another_api()
        self.start("echo one", "--key", "/id", AWS_LAMBDA_FUNCTION_NAME="one")
        self.start("echo two", "--key", "/id", api=other, AWS_LAMBDA_FUNCTION_NAME="two")
        self.succeeded(self.api.invoke({"id": "x"}), b"one\n")
        self.succeeded(other.invoke({"id": "x"}), b"two\n")

    def test_what_the_handler_is_told(self):
        self.start('echo "$_X_AMZN_TRACE_ID|$HOLDFAST_REQUEST_ID|$HOLDFAST_FUNCTION_ARN|$HOLDFAST_TASK"', "--key", "/id")
        told = self.api.invoke({"id": "k"}, request_id="r-1")
        self.succeeded(told, b"Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=1|r-1|"
                             b"arn:aws:lambda:eu-west-1:1:function:f|k\n")

    def test_options_behind_the_command_are_its_own(self):
        self.start("", command=("printf", "%s|", "--key", "/id", "--", "--help"))
        self.succeeded(self.api.invoke({"id": "k"}), b"--key|/id|--|--help|")

    def test_the_same_key_with_something_else_is_refused(self):
        self.start("echo done", "--key", "/id", "--fingerprint", "/order")
        self.succeeded(self.api.invoke({"id": "k", "order": {"a": 1, "b": 2}}), b"done\n")
        self.succeeded(self.api.invoke({"order": {"b": 2.0, "a": 1}, "id": "k"}), b"done\n")
        self.failed(self.api.invoke({"id": "k", "order": {"a": 2}}), "Mismatch")
        self.failed(self.api.invoke({"id": "k"}), "FingerprintMissing", "/order")
        for event in (b'{"id":"k","order":18446744073709551616}', b'{"id":"k","order":{"a":1,"a":2}}'):
            self.failed(self.api.invoke(event), "EventMalformed", "fingerprint")

    def test_an_event_without_its_key_is_an_error_and_the_next_one_is_handled(self):
        self.start("cat", "--key", "/detail/id")
        for event in ({}, [], {"detail": 1}, {"detail": {"id": None}}, {"detail": {"id": ""}}, {"detail": {"id": 1.5}}):
            self.failed(self.api.invoke(event), "KeyMissing", "/detail/id")
        for event in (b"{", b"", b"\xff", b"[" * 100_000):
            self.failed(self.api.invoke(event), "EventMalformed", "JSON")
        self.failed(self.api.invoke({"detail": {"id": "k" * 501}}), "KeyTooLong", "500")
        self.succeeded(self.api.invoke({"detail": {"id": "a"}}), b'{"detail": {"id": "a"}}')

    def test_an_event_of_6_MB_is_handled(self):
        self.start("wc -c", "--key", "/id")
        self.succeeded(self.api.invoke({"id": "big", "x": "y" * (6 << 20)}), b"6291478\n")

    def test_what_does_not_fit_into_a_row_is_an_error_that_says_so(self):
        self.start("head -c 400000 /dev/zero", "--key", "/id")
        self.failed(self.api.invoke({"id": "k"}), "TooLarge", "400000", "350000")

    def test_a_response_that_lambda_refuses_for_its_size_is_told_as_the_error(self):
        self.start("echo fine")
        path = f"{RUNTIME}/invocation/r/response"
        self.api.fail_next(path, 413)
        self.failed(self.api.invoke({}, request_id="r"), "TooLarge", "6 MB")


class Failures(RuntimeTest):
    def test_an_exit_code_is_an_error_and_the_event_is_handled_again(self):
        self.start("echo why; [ -e fixed ]", "--key", "/id")
        self.failed(self.api.invoke({"id": "k"}), "HandlerFailed", "exit code 1", "why")
        (self.folder / "fixed").touch()
        self.succeeded(self.api.invoke({"id": "k"}), b"why\n")

    def test_an_exit_code_can_be_the_result(self):
        self.start("echo ran >>runs; echo no; exit 3", "--key", "/id", "--record-failures")
        for _ in range(2):
            self.failed(self.api.invoke({"id": "k"}), "HandlerFailed", "exit code 3", "no")
        self.assertEqual(len(self.lines("runs")), 1)

    def test_a_handler_that_crashes_may_have_begun(self):
        self.start("[ -e crashed ] || { touch crashed; kill -SEGV $$; }; echo ok", "--key", "/id", "--abandoned", "hold")
        self.failed(self.api.invoke({"id": "k"}), "HandlerKilled", "signal 11")
        self.failed(self.api.invoke({"id": "k"}), "Held", "task release")

    def test_an_invocation_ends_before_its_deadline_with_all_that_it_has_started(self):
        self.start("trap '' TERM; (trap '' TERM; while :; do sleep 0.1; date +%s%N >alive; done) & wait; sleep 100",
                   "--key", "/id")
        begun = time.time()
        told = self.api.invoke({"id": "k"}, seconds=3)
        self.assertLess(time.time(), begun + 3)
        self.failed(told, "TimedOut")
        last = (self.folder / "alive").read_text()
        time.sleep(0.5)
        self.assertEqual((self.folder / "alive").read_text(), last, "the group is gone")
        self.failed(self.api.invoke({"id": "other"}, seconds=-1), "TimedOut")

    def test_a_handler_is_told_to_end_before_it_is_killed(self):
        self.start("trap 'touch told; exit 0' TERM; sleep 100 & wait", "--key", "/id")
        self.failed(self.api.invoke({"id": "k"}, seconds=3), "TimedOut")
        self.assertTrue((self.folder / "told").exists())

    def test_what_timed_out_is_handled_again(self):
        self.start("[ -e slow ] || { touch slow; sleep 100; }; echo $HOLDFAST_EPOCH", "--key", "/id")
        self.failed(self.api.invoke({"id": "k"}, seconds=2), "TimedOut")
        self.succeeded(self.api.invoke({"id": "k"}), b"2\n")

    def test_a_command_that_is_not_there_is_an_error_of_the_init(self):
        environment = {**os.environ, "AWS_LAMBDA_RUNTIME_API": self.api.address}
        ended = subprocess.run([serve.PROGRAM, "lambda", "--store", self.store, "--", "no-such-handler"],
                               env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("no-such-handler", ended.stderr)
        told = self.api.wait_told("/init/error")
        self.assertEqual(told.error_type, "Holdfast.Init")
        self.assertIn("no-such-handler", told.json()["errorMessage"])

    def test_settings_that_make_no_sense_are_errors_of_the_init(self):
        for count, arguments in enumerate((["--key", "id"], ["--key", "/a~2"], ["--ttl", "0s"], ["--abandoned", "x"]), 1):
            code, _ = self.start("true", *arguments).end()
            self.assertEqual(code, 2, arguments)
            self.assertEqual(self.api.wait_told("/init/error", count).error_type, "Holdfast.Usage")

    def test_a_table_that_no_other_environment_sees_is_told_of(self):
        runtime = self.start("echo fine")
        self.succeeded(self.api.invoke({}), b"fine\n")
        runtime.process.send_signal(signal.SIGTERM)
        self.assertIn("holdfast.db is this environment's own", runtime.end()[1])

    def test_outside_of_lambda_it_says_so(self):
        runtime = Runtime("", self.store, self.folder, "true")
        code, errors = runtime.end()
        self.assertEqual(code, 2)
        self.assertIn("AWS_LAMBDA_RUNTIME_API", errors)


class Api(RuntimeTest):
    def test_an_api_that_answers_with_a_fault_of_its_own_ends_it(self):
        for status in (403, 500):
            api = self.another_api()
            api.fail_next(f"{RUNTIME}/invocation/next", status)
            code, errors = self.start("true", api=api).end()
            self.assertEqual(code, 1)
            self.assertIn(str(status), errors)

    def test_a_response_that_comes_too_late_for_lambda_is_told_and_the_next_event_handled(self):
        self.start("echo fine")
        self.api.fail_next(f"{RUNTIME}/invocation/r/response", 400, b'{"errorType":"InvalidRequestID"}')
        self.api.send_invocation({}, request_id="r")
        self.succeeded(self.api.invoke({}), b"fine\n")

    def test_a_response_that_lambda_cannot_take_ends_it_and_the_result_stays(self):
        runtime = self.start("echo ran >>runs; echo fine", "--key", "/id")
        self.api.fail_next(f"{RUNTIME}/invocation/r/response", 500)
        self.api.send_invocation({"id": "k"}, request_id="r")
        self.assertEqual(runtime.end()[0], 1)
        self.start("echo ran >>runs; echo fine", "--key", "/id")
        self.succeeded(self.api.invoke({"id": "k"}), b"fine\n")
        self.assertEqual(len(self.lines("runs")), 1)

    def test_it_ends_when_the_api_goes_away(self):
        api = self.another_api()
        runtime = self.start("echo fine", api=api)
        self.succeeded(api.invoke({}), b"fine\n")
        api.close()
        code, errors = runtime.end()
        self.assertEqual(code, 1)
        self.assertIn(api.address, errors)

    def test_told_to_end_it_does_so_with_what_it_has_begun(self):
        runtime = self.start("trap 'echo told; exit 0' TERM; touch begun; while :; do sleep 0.1; done", "--key", "/id")
        request = self.api.send_invocation({"id": "k"})
        self.wait_for("begun")
        runtime.process.send_signal(signal.SIGTERM)
        self.succeeded(self.api.result(request), b"told\n")
        self.assertEqual(runtime.end()[0], 0)

    def test_told_to_end_while_it_waits_it_ends(self):
        runtime = self.start("echo fine")
        self.succeeded(self.api.invoke({}), b"fine\n")
        runtime.process.send_signal(signal.SIGTERM)
        self.assertEqual(runtime.end()[0], 0)


class Twins(RuntimeTest):
    def test_of_events_that_come_at_once_one_is_handled_and_the_others_wait_for_its_result(self):
        apis = [self.another_api() for _ in range(4)]
        for api in apis:
            self.start("echo ran >>runs; sleep 0.5; echo done", "--key", "/id", "--wait", "1m", api=api)
        answers = [None] * len(apis)

        def invoke(index: int):
            answers[index] = apis[index].invoke({"id": "k"})

        threads = [threading.Thread(target=invoke, args=(index,)) for index in range(len(apis))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for answer in answers:
            self.succeeded(answer, b"done\n")
        self.assertEqual(len(self.lines("runs")), 1)

    def test_who_does_not_wait_is_told_that_it_is_being_handled(self):
        other = self.another_api()
        self.start("touch begun; while [ ! -e go ]; do sleep 0.05; done; echo done", "--key", "/id")
        self.start("echo never", "--key", "/id", api=other)
        first = self.api.send_invocation({"id": "k"})
        self.wait_for("begun")
        self.failed(other.invoke({"id": "k"}), "Busy")
        (self.folder / "go").touch()
        self.succeeded(self.api.result(first), b"done\n")

    def test_who_waits_is_answered_before_its_deadline(self):
        other = self.another_api()
        self.start("touch begun; exec sleep 100", "--key", "/id")
        self.start("echo never", "--key", "/id", "--wait", "10m", api=other)
        self.api.send_invocation({"id": "k"}, seconds=600)
        self.wait_for("begun")
        begun = time.time()
        told = other.invoke({"id": "k"}, seconds=3)
        self.assertLess(time.time(), begun + 3)
        self.assertIn(told.error_type, ("Holdfast.Busy", "Holdfast.Unavailable", "Holdfast.TimedOut"))


class Frozen(OnDynalite, RuntimeTest):
    def test_frozen_for_longer_than_its_lease_it_does_not_say_what_another_has_done_meanwhile(self):
        other = self.another_api()
        script = "echo begun >>begun; while [ ! -e go ]; do sleep 0.05; done; echo $HOLDFAST_EPOCH"
        frozen = self.start(script, "--key", "/id", "--ttl", "1s")
        self.start(script, "--key", "/id", "--wait", "1m", api=other)
        first = self.api.send_invocation({"id": "k"})
        self.wait_for("begun")
        frozen.process.send_signal(signal.SIGSTOP)
        second = other.send_invocation({"id": "k"})
        self.eventually(lambda: len(self.lines("begun")) == 2)
        (self.folder / "go").touch()
        self.succeeded(other.result(second), b"2\n")
        frozen.process.send_signal(signal.SIGCONT)
        self.failed(self.api.result(first), "LostRight")
        self.api.told.clear()
        self.succeeded(self.api.invoke({"id": "k"}), b"2\n")

    def test_frozen_between_two_events_it_handles_the_next_one(self):
        runtime = self.start("echo $HOLDFAST_EPOCH", "--key", "/id", "--ttl", "300ms")
        self.succeeded(self.api.invoke({"id": "k"}), b"1\n")
        runtime.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        request = self.api.send_invocation({"id": "other"})
        runtime.process.send_signal(signal.SIGCONT)
        self.succeeded(self.api.result(request), b"1\n")


if __name__ == "__main__":
    serve.main_program()
    unittest.main()
