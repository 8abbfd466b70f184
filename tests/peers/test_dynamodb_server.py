"""The servers of dynamodb_server.py are there when they are needed, and surely gone afterwards."""
import contextlib
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import unittest

from dynamodb_server import Shared

PROGRAM = pathlib.Path(__file__).resolve().parent / "dynamodb_server.py"
LIMIT_SECONDS = 120  # generous: nothing here is measured
QUICK = "dynalite"  # what is tried is the keeper, so the server that starts sooner


def eventually(condition, what: str) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {LIMIT_SECONDS} s: {what}")
        time.sleep(0.02)


def serves(endpoint: str) -> bool:
    host, port = endpoint.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except OSError:
        return False
    return True


def User(name: str, kind: str = QUICK, runner: str = "none") -> Shared:  # pylint: disable=invalid-name
    return Shared(kind, name, runner, linger="0.1")


def some_name() -> str:
    return "holdfast-test-keeper-" + secrets.token_hex(8)


class OneServerForAll(unittest.TestCase):
    def test_all_who_name_it_get_the_same_server_and_it_ends_when_the_last_of_them_leaves(self) -> None:
        name = some_name()
        first, second = User(name), User(name)
        self.assertEqual(first.endpoint, second.endpoint)
        first.close()
        # The keeper has seen that the first left once it has answered the third.
        third = User(name)
        self.assertEqual(third.endpoint, second.endpoint)
        third.close()
        self.assertTrue(serves(second.endpoint))
        second.close()
        eventually(lambda: not serves(second.endpoint), "the server ends")

    def test_of_many_who_come_at_once_all_get_the_same_server(self) -> None:
        name = some_name()
        script = ("import sys,time\nsys.path.insert(0,sys.argv[1])\nimport test_dynamodb_server as t\n"
                  "user=t.User(sys.argv[2])\nprint(user.endpoint,flush=True)\ntime.sleep(1000)")
        with contextlib.ExitStack() as stack:
            users = [stack.enter_context(subprocess.Popen([sys.executable, "-c", script, PROGRAM.parent, name],
                                                          stdout=subprocess.PIPE, text=True)) for _ in range(8)]
            lines = [user.stdout.readline() for user in users]
            self.assertTrue(lines[0].startswith("http:"), lines[0])
            self.assertEqual(set(lines), {lines[0]})
            for user in users:
                user.kill()

    def test_names_that_differ_have_servers_that_differ(self) -> None:
        first, second = User(some_name()), User(some_name())
        self.assertNotEqual(first.endpoint, second.endpoint)
        first.close()
        second.close()

    def test_amazons_server_is_started_and_ended_the_same_way(self) -> None:
        user = User(some_name(), "local")
        self.assertRegex(user.endpoint, r"^http://127\.0\.0\.1:\d+$")
        self.assertTrue(serves(user.endpoint))
        user.close()
        eventually(lambda: not serves(user.endpoint), "the server ends")


class NothingIsLeftBehind(unittest.TestCase):
    def test_a_server_whose_keeper_is_killed_ends_too(self) -> None:
        user = User(some_name())
        os.kill(user.keeper, signal.SIGKILL)
        eventually(lambda: not serves(user.endpoint), "the server ends")
        user.close()

    def test_a_server_whose_user_is_killed_ends_too(self) -> None:
        with subprocess.Popen([sys.executable, "-c",
                               "import sys,time\nsys.path.insert(0,sys.argv[1])\nimport test_dynamodb_server as t\n"
                               "user=t.User(sys.argv[2])\nprint(user.endpoint,flush=True)\ntime.sleep(1000)",
                               PROGRAM.parent, some_name()], stdout=subprocess.PIPE, text=True) as user:
            line = user.stdout.readline()
            user.kill()
        eventually(lambda: not serves(line.strip()), "the server ends")

    def test_a_server_of_its_own_ends_with_whoever_started_it(self) -> None:
        with subprocess.Popen([sys.executable, "-c",
                               "import subprocess,sys,time\n"
                               "subprocess.Popen([sys.executable,*sys.argv[1:]])\ntime.sleep(1000)",
                               PROGRAM, QUICK], stdout=subprocess.PIPE, text=True) as parent:
            endpoint = parent.stdout.readline().strip()
            self.assertTrue(serves(endpoint), endpoint)
            parent.kill()
        eventually(lambda: not serves(endpoint), "the server ends")

    def test_one_that_died_is_replaced_for_the_next_user(self) -> None:
        name = some_name()
        user = User(name)
        children = pathlib.Path(f"/proc/{user.keeper}/task/{user.keeper}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        self.assertEqual(user.socket.recv(1), b"")  # the keeper has gone with it
        user.close()
        another = User(name)
        self.assertTrue(serves(another.endpoint))
        another.close()


class AsLongAsTheRun(unittest.TestCase):
    def test_it_stays_between_the_tests_of_one_run_and_ends_with_the_run(self) -> None:
        name, runner = some_name(), "runner" + secrets.token_hex(3)
        # Like ctest: starts one test after the other, each a process that ends.
        with subprocess.Popen([sys.executable, "-c",
                               "import pathlib,subprocess,sys,time\n"
                               "pathlib.Path('/proc/self/comm').write_text(sys.argv[3])\n"
                               "test='import sys;sys.path.insert(0,sys.argv[1]);import test_dynamodb_server as t;"
                               "user=t.User(sys.argv[2],runner=sys.argv[3]);print(user.endpoint,flush=True)'\n"
                               "for _ in range(3):\n"
                               "  subprocess.run([sys.executable,'-c',test,*sys.argv[1:]],check=True)\n"
                               "print('done',flush=True)\ntime.sleep(1000)",
                               PROGRAM.parent, name, runner], stdout=subprocess.PIPE, text=True) as run:
            lines = [run.stdout.readline() for _ in range(4)]
            self.assertEqual(lines[3], "done\n")
            self.assertEqual(set(lines[:3]), {lines[0]}, "each test of the run had the same server, unused in between")
            endpoint = lines[0].strip()
            self.assertTrue(serves(endpoint))
            run.kill()
        eventually(lambda: not serves(endpoint), "the server ends")


class WhatIsMissing(unittest.TestCase):
    def test_a_missing_interpreter_is_told_with_what_to_install(self) -> None:
        for kind, variable, what in (("local", "HOLDFAST_JAVA", "Java"), ("dynalite", "HOLDFAST_NODE", "Node")):
            with self.subTest(kind):
                ended = subprocess.run([sys.executable, PROGRAM, kind], capture_output=True, text=True, check=False,
                                       env={**os.environ, variable: "/nowhere/at/all"}, timeout=LIMIT_SECONDS)
                self.assertEqual(ended.returncode, 1)
                self.assertTrue(re.match(rf"dynamodb_server.py: {what} is not installed: run ./dev setup test",
                                         ended.stderr), ended.stderr)

    def test_who_waits_for_a_shared_one_is_told_as_well(self) -> None:
        os.environ["HOLDFAST_NODE"] = "/nowhere/at/all"
        try:
            user = User(some_name())
        finally:
            del os.environ["HOLDFAST_NODE"]
        user.close()
        self.assertTrue(user.failure.startswith("Node is not installed"), user.failure)

    def test_one_that_ends_at_once_is_told_with_what_it_said(self) -> None:
        ended = subprocess.run([sys.executable, PROGRAM, "local"], capture_output=True, text=True, check=False,
                               env={**os.environ, "HOLDFAST_JAVA": "/bin/ls"}, timeout=LIMIT_SECONDS)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("ended before it answered. It said: /bin/ls: ", ended.stderr)


if __name__ == "__main__":
    unittest.main()
