#!/usr/bin/env python3
"""`holdfast serve --journal` that is killed before each of its writes, to its store and to its journal, and started
again by somebody: its callers repeat what they were not answered, and find everything done once.

  test_killed.py PROGRAM KILL_AT_LIBRARY
"""
import concurrent.futures
import contextlib
import http.client
import pathlib
import signal
import sys
import tempfile
import time
import unittest

import server as serve
from server import Answer, Caller, Server

LIBRARY = ""  # tests/support/kill_at.cpp, to be preloaded
AT_ONCE = 24  # days: each waits for the most part


class Day:
    """What happens in a shop, all of it through one server, which is killed before its write number `killed_at`."""

    def __init__(self, folder: str, killed_at: int):
        self.folder = pathlib.Path(folder)
        self.server = self.caller = None
        self.start(LD_PRELOAD=LIBRARY, KILL_AT=str(killed_at))

    def start(self, **variables: str) -> None:
        with contextlib.suppress(RuntimeError, OSError, http.client.HTTPException):
            self.server = Server(f"sqlite:{self.folder}/store", "--journal", f"{self.folder}/journal",
                                 "--store-patience", "300ms", **variables)
            self.caller = Caller(self.server)

    def start_again(self) -> None:
        """Its supervisor, once it is gone."""
        if self.server is not None and self.server.process.poll() is None and self.caller is not None:
            return
        if self.server is not None:
            self.was_killed = self.was_killed or self.server.process.poll() == -signal.SIGKILL
            self.server.kill()
        else:
            self.was_killed = True
        self.caller = None
        self.start()

    was_killed = False

    def ask(self, method: str, path: str, body=None) -> Answer:
        """Until it is answered, and not with "ask again"."""
        until = time.monotonic() + serve.PATIENCE_SECONDS
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.caller is not None:
                    answer = self.caller.call(method, path, body)
                    if answer.status != 503:
                        return answer
            if time.monotonic() > until:
                raise TimeoutError(f"{method} {path}")
            time.sleep(0.02)
            if self.server is not None and self.server.process.poll() is None and self.caller is not None:
                self.caller.connection.close()  # or it has only cut us
            else:
                self.start_again()

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, path: str, **body) -> Answer:
        return self.ask("POST", path, body)

    def eventually(self, condition) -> None:
        until = time.monotonic() + serve.PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(str(self.get("/v1/tickets?all=true").body))
            time.sleep(0.1)

    def away(self):
        return serve.away(self.folder / "store")

    def live(self) -> None:
        self.post("/v1/stock/hat/add", delta=10, op_id="delivery")
        self.post("/v1/quotas/till", items={"hat": 5})
        self.post("/v1/counters/c/add", delta=5, op_id="add", mode="available")
        self.post("/v1/decide/k", value="ours", ticket="decide", mode="available")
        self.run_once()
        self.post("/v1/queues/q/send", group="g", body="first", dedup_id="first")
        self.consume()
        with self.away():
            self.post("/v1/counters/c/add", delta=2, op_id="add-2", mode="available")
            self.post("/v1/counters/c/add", delta=-100, floor=0, op_id="too-much", mode="available")
            self.post("/v1/decide/l", value="ours", ticket="decide-2", mode="available")
            self.post("/v1/queues/q/send", group="g", body="second", dedup_id="second", mode="available")
            self.post("/v1/sales/pair", items={"hat": 2})
        self.post("/v1/quotas/till/give-back")
        self.eventually(lambda: self.post("/v1/tickets/too-much/compensated").status == 200)
        self.eventually(lambda: self.get("/v1/tickets").body["tickets"] == [])
        self.eventually(lambda: self.get("/v1/quotas")["quotas"][0]["state"] == "returned")

    def run_once(self) -> None:
        """As a job does that is repeated until it has run."""
        while True:
            turn = self.post("/v1/once/invoice", ttl="1s", wait="1m", hold_for="1m")
            if turn["turn"] == "replay":
                return
            self.post("/v1/once/invoice/finish", guard=turn["guard"], content="paid")

    def consume(self) -> None:
        while self.get("/v1/queues/q/peek?group=g")["size"] > 0:
            batch = self.post("/v1/queues/q/receive", wait="1m", visibility="1s")["batch"]
            if batch is not None:
                self.post("/v1/queues/q/ack", receipt=batch["receipt"])

    def end(self) -> None:
        if self.server is not None:
            self.server.kill()


class Killed(unittest.TestCase):
    def day(self, killed_at: int) -> bool:
        """Whether it was killed at all."""
        with tempfile.TemporaryDirectory(prefix="holdfast-killed-") as folder:
            day = Day(folder, killed_at)
            try:
                day.live()
                self.look(day)
            except Exception as error:
                raise AssertionError(f"killed before write {killed_at}: {error!r}") from error
            finally:
                day.end()
            return day.was_killed

    def look(self, day: Day) -> None:
        self.assertEqual(day.get("/v1/counters/c")["value"], 7)
        for key in "kl":
            self.assertEqual(day.get(f"/v1/decide/{key}")["value"], "ours")
        self.assertEqual(day.get("/v1/once/invoice")["result"]["content"], "paid")
        group = day.get("/v1/queues/q/peek?group=g")
        self.assertEqual([(each["seq"], each["body"]) for each in group["messages"]], [(2, "second")])
        self.assertEqual(day.get("/v1/stock/hat")["available"], 8, "two are sold, and the rest is back")
        self.assertEqual(day.get("/v1/reservations/till")["state"], "cancelled")
        self.assertEqual(day.get("/v1/reservations/pair")["state"], "confirmed")
        states = {each["ticket"]: each["state"] for each in day.get("/v1/tickets?all=true")["tickets"]}
        # Those of before the store was away are in the journal only where the answer came too late.
        accepted = {"add-2", "too-much", "decide-2", "second", "pair"}
        self.assertLessEqual(accepted, set(states) | {"add-2", "decide-2", "second"})
        for ticket, state in states.items():
            self.assertEqual(state, "rejected" if ticket == "too-much" else "confirmed", ticket)
        self.assertEqual(day.post("/v1/tasks/t/acquire", wait="1m").status, 201)

    def test_before_each_of_its_writes_and_everything_is_done_once(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            first, were_killed = 1, [True]
            while all(were_killed):
                were_killed = list(pool.map(self.day, range(first, first + AT_ONCE)))
                first += AT_ONCE
        self.assertGreater(first, 100, "there is something to be killed at")
        print(f"killed before {first - 1 - were_killed.count(False)} writes")


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(2)
    serve.main_program()
    unittest.main()
