"""Tasks of `holdfast run` in a table that others made, CoordenadoresEfemeros, beside a lock in boto3 that puts and deletes
(put_lock.py): in both directions never two believe in one, and what cannot hold there.

  test_shared_tasks.py PROGRAM [TEST…]
"""
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

from beliefs import Belief, both_at_once
from dynamodb_server import Shared
from plain_worker import Names, PlainLeases, open_table
from put_lock import EXPIRES, KEY, OWNER, PutLock

LIMIT_SECONDS = 120
BUSY, LOST = 75, 76
PROGRAM = ""  # set by who runs the tests
ITEM = "TASK#job"  # what the others have to call the task


class SharedTasks(unittest.TestCase):
    def setUp(self) -> None:
        server = Shared("local")
        self.addCleanup(server.close)
        if not server.endpoint:
            raise RuntimeError(server.failure)
        name = "CoordenadoresEfemeros-" + os.urandom(8).hex()
        self.table = open_table(server.endpoint, name, LIMIT_SECONDS)
        self.table.meta.client.create_table(
            TableName=name, BillingMode="PAY_PER_REQUEST", AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
            KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}])
        self.table.wait_until_exists()
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("HOLDFAST_", "AWS_"))},
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "HOLDFAST_STORE": f"dynamodb://{name}?region=us-east-1&endpoint={server.endpoint}&key={KEY}&owner={OWNER}"
                              f"&expires={EXPIRES}&expires_unit=s"}

    def holdfast(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([PROGRAM, *arguments], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=LIMIT_SECONDS, check=False)

    def start(self, *options: str) -> "subprocess.Popen[str]":
        """`run` with a command that says when it begins and when it ends, which it does at the end of its input."""
        command = ["/bin/sh", "-c", "date +%s.%N; cat >/dev/null; date +%s.%N"]
        process = subprocess.Popen([PROGRAM, "run", "job", *options, "--", *command], env=self.environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process: "subprocess.Popen[str]") -> None:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def lock(self, instance: str = "p", lease_seconds: int = 60) -> PutLock:
        return PutLock(self.table, instance, lease_seconds)

    def item(self) -> dict:
        return self.table.get_item(Key={KEY: ITEM}, ConsistentRead=True).get("Item", {})

    def epoch_of_a_run(self) -> str:
        return self.holdfast("run", "job", "--wait", "1m", "--", "sh", "-c", "echo $HOLDFAST_EPOCH").stdout.strip()


class EachSeesTheOther(SharedTasks):
    def test_what_a_run_holds_is_not_put_over_until_it_is_given_back(self) -> None:
        held = self.start()
        self.assertTrue(held.stdout.readline())
        self.assertIsNone(self.lock().acquire(ITEM))
        held.stdin.close()
        self.assertEqual(held.wait(LIMIT_SECONDS), 0)
        self.assertIsNotNone(self.lock().acquire(ITEM))

    def test_what_was_put_is_not_run_until_it_is_deleted(self) -> None:
        self.lock("p-17").acquire(ITEM)
        busy = self.holdfast("run", "job", "--", "true")
        self.assertEqual(busy.returncode, BUSY)
        self.assertIn("held by p-17", busy.stderr)
        self.assertRegex(self.holdfast("task", "show", "job").stdout, r"lease +.+ left\n(.*\n)*owner +p-17\n")
        self.assertTrue(self.lock("p-17").release(ITEM))
        self.assertEqual(self.holdfast("run", "job", "--", "true").returncode, 0)

    def test_one_that_died_is_succeeded_by_the_other_and_not_before_its_expiry(self) -> None:
        until = self.lock(lease_seconds=2).acquire(ITEM)
        held = self.start("--ttl", "2s", "--wait", "1m")
        self.assertGreater(float(held.stdout.readline()), until)
        held.kill()
        killed = time.time()
        while not self.lock().acquire(ITEM):
            self.assertLess(time.time(), killed + LIMIT_SECONDS)
            time.sleep(0.05)
        self.assertEqual(self.item()[OWNER], "p")

    def test_a_run_that_wakes_up_too_late_ends_and_leaves_the_others_item_as_it_is(self) -> None:
        held = self.start("--ttl", "1s")
        self.assertTrue(held.stdout.readline())
        held.send_signal(signal.SIGSTOP)
        while not self.lock().acquire(ITEM):
            time.sleep(0.05)
        put = self.item()
        held.send_signal(signal.SIGCONT)
        self.assertEqual(held.wait(LIMIT_SECONDS), LOST)
        self.assertEqual(self.item(), put)

    def test_a_put_takes_the_epoch_with_it_and_an_update_leaves_it(self) -> None:
        self.assertEqual([self.epoch_of_a_run(), self.epoch_of_a_run()], ["1", "2"])
        updating = PlainLeases(self.table, "u", Names(KEY, OWNER, EXPIRES, 1, ""), 60)
        self.assertTrue(updating.claim(ITEM))
        self.assertTrue(updating.release(ITEM))
        self.assertEqual(self.epoch_of_a_run(), "3")
        self.lock().acquire(ITEM)
        self.lock().release(ITEM)
        self.assertEqual(self.epoch_of_a_run(), "1", "there was nothing to go on from")

    def test_listing_needs_the_index_and_finds_only_what_has_a_state(self) -> None:
        self.assertEqual(self.epoch_of_a_run(), "1")
        listed = self.holdfast("task", "ls")
        self.assertEqual(listed.returncode, 1)
        self.assertIn("holdfast init", listed.stderr)
        self.assertEqual(self.holdfast("init").returncode, 0)
        self.assertRegex(self.holdfast("task", "ls").stdout, r"task +job +1 +free")
        self.lock().acquire(ITEM)
        self.assertNotIn("job", self.holdfast("task", "ls").stdout)
        self.assertEqual(self.holdfast("task", "show", "job").returncode, 0)


class TheyContend(SharedTasks):
    """Some of each want the task again and again, and some of those who have it die with it."""

    LEASE_SECONDS = 3
    DEATHS = 0.4

    def setUp(self) -> None:
        super().setUp()
        self.over = threading.Event()
        self.taking = threading.Lock()
        self.beliefs: "list[tuple[Belief, bool]]" = []  # and whether it ended in a death
        self.failures: "list[str]" = []

    def believed(self, who: str, since: float, until: float, died: bool) -> None:
        with self.taking:
            self.beliefs.append((Belief(ITEM, who, since, until, ""), died))

    def put_and_delete(self, name: str) -> None:
        drawn = random.Random(name)
        instances = 0
        while not self.over.is_set():
            lock = self.lock(f"{name}.{instances}", self.LEASE_SECONDS)
            expires = lock.acquire(ITEM)
            if expires is None:
                time.sleep(drawn.uniform(0.3, 1))
                continue
            since = time.time()
            instances += 1
            time.sleep(drawn.uniform(0.05, 0.5))
            died = drawn.random() < self.DEATHS
            self.believed(name, since, expires if died else min(expires, time.time()), died)
            if not died:
                lock.release(ITEM)
            # Time for the others, who look less often: also for what it leaves to expire.
            time.sleep(drawn.uniform(1, 3) + (self.LEASE_SECONDS + 2 if died else 0))

    def run_commands(self, name: str) -> None:
        drawn = random.Random(name)
        while not self.over.is_set():
            process = self.start("--ttl", f"{self.LEASE_SECONDS}s", "--skew", "200ms", "--wait", "5s")
            since = process.stdout.readline()
            if not since:
                if process.wait(LIMIT_SECONDS) != BUSY:
                    self.failures.append(f"{name} ended with {process.returncode}")
                continue
            time.sleep(drawn.uniform(0.05, 0.5))
            died = drawn.random() < self.DEATHS
            if died:
                until = time.time()
                process.kill()
            else:
                process.stdin.close()
                until = float(process.stdout.readline() or since)
            process.wait(LIMIT_SECONDS)
            self.believed(name, float(since), until, died)
            time.sleep(drawn.uniform(0, 0.3))

    def handovers(self) -> "set[tuple[str, str, bool]]":
        """(of which side who took it is, of which who had it, whether that one had died)."""
        with self.taking:
            in_order = sorted(self.beliefs, key=lambda each: each[0].since)
        return {(after.worker[0], before.worker[0], died)
                for (before, died), (after, _) in zip(in_order, in_order[1:])}

    def test_never_two_believe_in_it_and_each_side_takes_over_from_the_other(self) -> None:
        wanted = {("h", "p", False), ("h", "p", True), ("p", "h", False), ("p", "h", True)}
        threads = [threading.Thread(target=work, args=(name,)) for work, name in
                   [(self.put_and_delete, "p1"), (self.put_and_delete, "p2"), (self.run_commands, "h1"),
                    (self.run_commands, "h2"), (self.run_commands, "h3")]]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        while not wanted <= self.handovers() or time.monotonic() < begun + 20:
            if time.monotonic() > begun + 2 * LIMIT_SECONDS:
                break
            time.sleep(0.1)
        self.over.set()
        for thread in threads:
            thread.join()
        self.assertEqual(self.failures, [])
        self.assertEqual(both_at_once([belief for belief, _ in self.beliefs]), [])
        self.assertLessEqual(wanted, self.handovers())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: test_shared_tasks.py PROGRAM [TEST…]")
    PROGRAM = sys.argv.pop(1)
    unittest.main(warnings="ignore")  # boto3 keeps its connections for later
