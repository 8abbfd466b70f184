"""`holdfast serve` as a process, and a caller of it that judges every answer by the OpenAPI document."""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
from typing import NamedTuple, Optional

from openapi import Document

PATIENCE_SECONDS = 120  # for one thing to happen on a busy machine

PROGRAM = ""  # set by who runs the tests


sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import dynamodb_server  # noqa: E402  pylint: disable=wrong-import-position

ANY_ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_CONFIG_FILE": "/dev/null",
               "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true"}


@contextlib.contextmanager
def away(database):
    """Nobody else gets to this SQLite file meanwhile: the store does not answer."""
    other = sqlite3.connect(database, isolation_level=None, timeout=60)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


class OnSqlite(unittest.TestCase):
    """Each test has a folder of its own, and a table in it: what --store says."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-serve-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = f"sqlite:{self.folder}/holdfast.db"

    def eventually(self, condition, what: str = "") -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.05)


class OnDynalite:
    """In front of such a test, where a process is stopped: one that is stopped in the middle of a write keeps others from
    a SQLite file."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = dynamodb_server.Server("dynalite")
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        super().setUp()
        os.environ.update(ANY_ACCOUNT)
        self.store = f"dynamodb://t{uuid.uuid4().hex}?region=eu-west-1&endpoint={self.server.endpoint}"
        subprocess.run([PROGRAM, "init", "--store", self.store], check=True, stdout=subprocess.DEVNULL,
                       timeout=PATIENCE_SECONDS)


class Answer(NamedTuple):
    status: int
    headers: dict
    body: Optional[dict]

    def __getitem__(self, name):
        return self.body[name] if isinstance(name, str) else tuple.__getitem__(self, name)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Server:
    """Started, and ended whatever happens: use with `with`."""

    def __init__(self, store: str, *arguments: str, listen: str = "127.0.0.1:0", token: str = "", command=(),
                 **variables: str):
        """`command`: started in place of the program with its arguments."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
        if token:
            environment["SERVE_TOKEN"] = token
            arguments += ("--token", "env:SERVE_TOKEN")
        self.token = token
        self.callers = []
        command = command or [PROGRAM, "serve", "--store", store, "--listen", listen, *arguments]
        self.process = subprocess.Popen(command, env={**environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.first_line = self.process.stdout.readline().strip()
        if not self.first_line.startswith("listening on "):
            raise RuntimeError(f"holdfast serve: {self.first_line} {self.process.communicate()[1]}")
        self.address = self.first_line.removeprefix("listening on ").removeprefix("http://")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for caller in self.callers:
            caller.connection.close()

    def stop(self) -> int:
        """In order; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def connect(self, timeout: float = PATIENCE_SECONDS) -> http.client.HTTPConnection:
        if self.address.startswith("unix:"):
            return UnixConnection(self.address.removeprefix("unix:"), timeout)
        return http.client.HTTPConnection(self.address, timeout=timeout)

    def raw(self) -> socket.socket:
        host, port = self.address.rsplit(":", 1)
        return socket.create_connection((host, int(port)), PATIENCE_SECONDS)


class Caller:
    """One connection, kept as long as the server keeps it."""

    operations = set()  # of all callers: those that were seen to succeed

    def __init__(self, server: Server, token: Optional[str] = None):
        self.token = server.token if token is None else token
        self.connection = server.connect()
        server.callers.append(self)
        self.document = Document(self.ask("GET", "/openapi.json").body)

    def ask(self, method: str, path: str, body=None, headers: Optional[dict] = None) -> Answer:
        """As it comes: looked at by nobody."""
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        self.connection.request(method, path, data, {**sent, **(headers or {})})
        answer = self.connection.getresponse()
        text = answer.read()
        return Answer(answer.status, dict(answer.getheaders()), json.loads(text) if text else None)

    def call(self, method: str, path: str, body=None) -> Answer:
        answer = self.ask(method, path, body)
        media = answer.headers["Content-Type"]
        name = self.document.judge_answer(method, path, answer.status, media, answer.body)
        if answer.status < 300:
            Caller.operations.add(name)
        return answer

    def post(self, path: str, **body) -> Answer:
        return self.call("POST", path, body)

    def get(self, path: str) -> Answer:
        return self.call("GET", path)


def main_program() -> None:
    """Takes the program from the command line, for unittest to have the rest."""
    global PROGRAM
    if len(sys.argv) < 2:
        sys.exit("usage: test_….py PROGRAM [TEST…]")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
